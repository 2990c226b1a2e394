import type { ForkSessionRequest } from '../../contract/forks.ts'
import { fromId } from '../../contract/kit/ids.ts'
import { Prisma, type TurnStatus } from '../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { DomainError, invalid } from '../kit/errors.ts'
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
  sessionId: string,
  { at, message, again }: ForkSessionRequest,
): Promise<ForkPlace> {
  if (message && again) throw invalid('again: must not be given together with message')
  const replaces = Boolean(message || again)
  if (at == null) {
    if (replaces) throw invalid('at: is required with message and again; give the message that is replaced')
    return { last: await findLastEnded(deps, sessionId), replaced: undefined }
  }
  const turnId = await findTurnId(deps, sessionId, at)
  const turn = turnId && (await deps.db.turn.findFirst({ where: { id: turnId, sessionId }, select: COLUMNS }))
  if (!turn) throw invalid('at: is not a message, an event or a turn of this session')
  const last = replaces ? await findBefore(deps, sessionId, turn.inputSequence) : turn
  if (last !== null) await requireEnded(deps, sessionId, last)
  return { last, replaced: replaces ? turn : undefined }
}

const findBefore = (deps: Deps, sessionId: string, sequence: number | undefined): Promise<PlacedTurn | null> =>
  deps.db.turn.findFirst({
    where: { sessionId, inputSequence: { lt: sequence } },
    orderBy: { inputSequence: 'desc' },
    select: COLUMNS,
  })

const findFirstUnfinished = (deps: Deps, sessionId: string, upTo?: number) =>
  deps.db.turn.findFirst({
    where: { sessionId, finishedAt: null, inputSequence: { lte: upTo } },
    orderBy: { inputSequence: 'asc' },
    select: { id: true, inputSequence: true },
  })

/** A queued turn may have been cancelled before the turns in front of it end. */
async function findLastEnded(deps: Deps, sessionId: string): Promise<PlacedTurn | null> {
  const head = await findFirstUnfinished(deps, sessionId)
  return findBefore(deps, sessionId, head?.inputSequence)
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
async function findTurnId(deps: Deps, sessionId: string, at: string): Promise<string | undefined> {
  if (at.startsWith('turn_')) return fromId(at)
  const query = at.startsWith('event_')
    ? ofEvent(sessionId, deps.events.ids.decode(sessionId, at, 'at'))
    : ofMessage(sessionId, at)
  const [row] = await deps.db.$queryRaw<{ id: string | null }[]>(query)
  return row?.id ?? undefined
}

/** Retention deletes only events of a turn between others of that turn, and messages may be queued in between. */
const ofEvent = (sessionId: string, sequence: number) => Prisma.sql`
  SELECT coalesce(
    (SELECT turn_id FROM events WHERE session_id = ${sessionId}::uuid AND sequence = ${sequence}),
    (SELECT turn_id FROM events
      WHERE session_id = ${sessionId}::uuid AND sequence < ${sequence} AND type <> 'input.message'
      ORDER BY sequence DESC LIMIT 1)
  )::text AS id`

/** The id of a result without one of its own is the beginning of a digest (domain/events/log/present.ts). */
const ofMessage = (sessionId: string, id: string) => Prisma.sql`
  SELECT coalesce(
    (SELECT id FROM turns WHERE id = ${fromId(id)}::uuid AND session_id = ${sessionId}::uuid),
    (SELECT turn_id FROM events
      WHERE session_id = ${sessionId}::uuid AND type IN ('input.message', 'output.message.completed', 'tool.completed')
        AND ${id} = CASE type
          WHEN 'tool.completed' THEN coalesce(
            data ->> 'message_id', 'message_' || left(encode(sha256(convert_to(turn_id || '/' || step, 'UTF8')), 'hex'), 32)
          )
          ELSE data #>> '{message,id}' END
      LIMIT 1)
  )::text AS id`
