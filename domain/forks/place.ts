import type { ForkSessionRequest } from '../../contract/forks.ts'
import { fromId } from '../../contract/kit/ids.ts'
import { Prisma, type TurnStatus } from '../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import type { Actor } from '../kit/actor.ts'
import { DomainError, invalid } from '../kit/errors.ts'
import { readFiltered } from '../kit/filtered-reads.ts'
import { toId } from '../kit/ids.ts'

type PlacedTurn = {
  id: string
  inputSequence: number
  agentVersion: number | null
  status: TurnStatus
  finishedAt: Date | null
}

/** Where a session is forked: after the turn `last`, null for its beginning, and before the turn `replaced`, if any. */
export type ForkPlace = { last: PlacedTurn | null; replaced: PlacedTurn | undefined }

const COLUMNS = { id: true, inputSequence: true, agentVersion: true, status: true, finishedAt: true } as const

/**
 * Returns where a request forks a session. Throws `invalid` for an `at` that the session has not, and `conflict` while
 * a turn is unfinished that would have to be copied.
 */
export async function placeFork(
  deps: Deps,
  actor: Actor,
  sessionId: string,
  { at, message, again }: ForkSessionRequest,
): Promise<ForkPlace> {
  if (message && again) throw invalid('again: must not be given together with message')
  const replaces = Boolean(message || again)
  if (at == null) {
    if (replaces) throw invalid('at: is required with message and again; give the message that is replaced')
    return { last: await findLastEnded(deps, sessionId), replaced: undefined }
  }
  const turnId = await findTurnId(deps, actor, sessionId, at)
  const turn = turnId && (await deps.db.turn.findFirst({ where: { id: turnId, sessionId }, select: COLUMNS }))
  if (!turn) throw invalid('at: is not a message, an event or a turn of this session')
  const last = replaces ? await findBefore(deps, sessionId, { sequence: turn.inputSequence }) : turn
  if (last !== null) await requireEnded(deps, sessionId, last)
  return { last, replaced: replaces ? turn : undefined }
}

/** Returns the latest turn before a sequence, or the latest of all; with `isEnded` the latest ended one. */
const findBefore = (
  deps: Deps,
  sessionId: string,
  { sequence, isEnded = false }: { sequence?: number; isEnded?: boolean },
): Promise<PlacedTurn | null> =>
  deps.db.turn.findFirst({
    where: { sessionId, inputSequence: { lt: sequence }, ...(isEnded ? { finishedAt: { not: null } } : {}) },
    orderBy: { inputSequence: 'desc' },
    select: COLUMNS,
  })

const findFirstUnfinished = (deps: Deps, sessionId: string, upTo: number) =>
  deps.db.turn.findFirst({
    where: { sessionId, finishedAt: null, inputSequence: { lte: upTo } },
    orderBy: { inputSequence: 'asc' },
    select: { id: true, inputSequence: true },
  })

/**
 * Returns the latest turn that has ended like all before it: a queued turn may have been cancelled before the turns in front
 * of it end. Messages that are accepted meanwhile come later.
 */
async function findLastEnded(deps: Deps, sessionId: string): Promise<PlacedTurn | null> {
  const last = await findBefore(deps, sessionId, { isEnded: true })
  const head = last && (await findFirstUnfinished(deps, sessionId, last.inputSequence))
  return head ? findBefore(deps, sessionId, { sequence: head.inputSequence }) : last
}

/** Half of a turn would have calls without results, and a queue would run twice. */
async function requireEnded(deps: Deps, sessionId: string, { inputSequence }: PlacedTurn): Promise<void> {
  const unfinished = await findFirstUnfinished(deps, sessionId, inputSequence)
  if (unfinished === null) return
  const turn = toId('turn', unfinished.id)
  throw new DomainError(
    'conflict',
    `${turn} is not finished, and a fork has whole turns; leave out at, give something before that turn, or wait for its end`,
    { code: 'session_busy', field: 'at' },
  )
}

/** Returns the turn of a message, of an event, which retention may have deleted, or of a turn itself. */
async function findTurnId(deps: Deps, actor: Actor, sessionId: string, at: string): Promise<string | undefined> {
  if (at.startsWith('turn_')) return fromId(at)
  const query = at.startsWith('event_')
    ? ofEvent(sessionId, deps.events.ids.decode(sessionId, at, 'at'))
    : ofMessage(sessionId, at)
  const read = (db: Prisma.TransactionClient) => db.$queryRaw<{ id: string | null }[]>(query)
  const [row] = await readFiltered(deps, actor, read).catch((error: unknown) => {
    const isLate = error instanceof DomainError && error.kind === 'unprocessable'
    throw isLate ? invalid('at: takes too long to find in this session; give the id of the turn') : error
  })
  return row?.id ?? undefined
}

/**
 * Retention deletes only events of a turn between others of that turn. In between, messages may be queued, and cancelled
 * before their turns start.
 */
const ofEvent = (sessionId: string, sequence: number) => Prisma.sql`
  SELECT coalesce(
    (SELECT turn_id FROM events WHERE session_id = ${sessionId}::uuid AND sequence = ${sequence}),
    (SELECT e.turn_id FROM events e
      WHERE e.session_id = ${sessionId}::uuid AND e.sequence < ${sequence} AND e.type <> 'input.message'
        AND EXISTS (SELECT FROM turns WHERE id = e.turn_id AND started_at IS NOT NULL)
      ORDER BY e.sequence DESC LIMIT 1)
  )::text AS id`

/**
 * Looks first without the data of events, which may be large, then in messages, and in results that have an id of their own.
 * The id of another result is the beginning of a digest (domain/events/log/present.ts).
 */
const ofMessage = (sessionId: string, id: string) => Prisma.sql`
  SELECT coalesce(
    (SELECT id FROM turns WHERE id = ${fromId(id)}::uuid AND session_id = ${sessionId}::uuid),
    (SELECT turn_id FROM events
      WHERE session_id = ${sessionId}::uuid AND type = 'tool.completed'
        AND ${fromId(id).replaceAll('-', '')} = left(encode(sha256(convert_to(turn_id || '/' || step, 'UTF8')), 'hex'), 32)
      LIMIT 1),
    (SELECT turn_id FROM events
      WHERE session_id = ${sessionId}::uuid AND type IN ('input.message', 'output.message.completed') AND data #>> '{message,id}' = ${id}
      LIMIT 1),
    (SELECT turn_id FROM events
      WHERE session_id = ${sessionId}::uuid AND type = 'tool.completed' AND data ->> 'message_id' = ${id}
      LIMIT 1)
  )::text AS id`
