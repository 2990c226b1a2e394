import type { SessionId, TurnId } from '../../../contract/kit/ids.ts'
import type { CancelTurnResponse } from '../../../contract/turns.ts'
import { atOnce } from '../../../lib/at-once.ts'
import type { TurnAdmission, TurnStatus } from '../../../prisma/generated/client.ts'
import type { NewEvent } from '../../events/log/append.ts'
import { type LockedSession, withLockedSession } from '../../events/log/transaction.ts'
import type { Actor, OrganizationScope } from '../../kit/actor.ts'
import { audit } from '../../kit/audit/entry.ts'
import { noSession, notFound } from '../../kit/errors.ts'
import { newUuid, toId } from '../../kit/ids.ts'
import { presentUsage } from '../../kit/usage.ts'
import { endOpenCalls } from '../calls.ts'
import type { Deps } from '../deps.ts'
import { nextTurn } from '../queue.ts'
import { admitSoon } from '../run/turn-admission.ts'
import { startTurnSoon } from '../start.ts'
import type { TurnPlace } from '../turn-place.ts'
import { notifyWorkflow } from './workflow-outbox.ts'

/** A cancelled turn, with the data to notify its workflow once the transaction is committed. */
export type Cancelled = { turnId: string; wasRunning: boolean; admission: TurnAdmission | null; at: Date }

const NOTICES_AT_ONCE = 16

const USER_REASON = 'cancelled by the user'
const OPERATOR_REASON = 'cancelled in Temporal'

/**
 * Cancels all running, waiting and queued turns of a session, or only `turnId`. The cancellation is recorded when this
 * returns, with or without a worker: nothing can be appended to those turns afterwards, and their workflows and
 * activities stop when they are notified. Throws `not_found` for a session or turn that the caller does not have.
 */
export async function cancelTurns(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
  turnId?: TurnId,
): Promise<CancelTurnResponse> {
  const where = { organizationId: actor.organizationId, sessionId }
  if (turnId !== undefined && !(await hasTurn(deps, where, turnId))) throw notFound('Turn')
  const cancelled = await cancelAndGoOn(deps, where, turnId && [turnId], { reason: USER_REASON, actor })
  if (cancelled === undefined) throw noSession()
  notifyCancelled(deps, where.organizationId, cancelled)
  const count = cancelled.length
  if (count === 0) return { status: 'no_op', message: 'There is nothing to cancel.' }
  return { status: 'cancelled', message: count === 1 ? 'The turn was cancelled.' : `${count} turns were cancelled.` }
}

/** Cancels the turn of a workflow that was cancelled in Temporal. Does nothing when the turn has ended. */
export async function cancelOwnTurn(deps: Deps, turn: TurnPlace): Promise<void> {
  const { turnId: id, ...where } = turn
  // Most were cancelled in the record, and then in Temporal.
  if ((await deps.db.turn.count({ where: { ...where, id, finishedAt: null } })) === 0) return
  notifyCancelled(deps, turn.organizationId, (await cancelAndGoOn(deps, turn, [id], { reason: OPERATOR_REASON })) ?? [])
}

async function hasTurn(deps: Deps, where: { organizationId: string; sessionId: string }, id: string) {
  return (await deps.db.turn.count({ where: { ...where, id } })) > 0
}

/**
 * Cancels a session's unfinished turns, or only `turnIds`, and starts the next one in the queue. Their workflows
 * are still to be notified. Returns undefined without a session.
 */
export async function cancelAndGoOn(
  deps: Deps,
  where: { organizationId: string; sessionId: string },
  turnIds: string[] | undefined,
  { reason = USER_REASON, actor = where }: { reason?: string; actor?: Actor | OrganizationScope },
): Promise<Cancelled[] | undefined> {
  const done = await withLockedSession(deps, where, async (session) => {
    const cancelled = await cancelUnfinished(session, { turnIds, reason, afterwards: 'idles' })
    const details = { session_id: toId('session', session.id) }
    await audit(
      session.db,
      actor,
      ...cancelled.map((one) => ({ action: 'turn.cancel', target: one.turnId, details }) as const),
    )
    // A turn that was not cancelled may now be at the head of the queue.
    const next = cancelled.length === 0 ? null : await nextTurn(session.db, session.id)
    return { cancelled, next: next && { ...where, turnId: next, agentId: session.agentId } }
  })
  if (done?.next) startTurnSoon(deps, done.next, 'early')
  return done?.cancelled
}

/**
 * Notifies the workflows of cancelled turns, and passes their places on; call it after the commit. A queued turn is
 * skipped unless it waits for a place: it has no workflow, or its workflow will find the cancellation in the record.
 */
export function notifyCancelled(deps: Deps, organizationId: string, cancelled: Cancelled[]): void {
  void atOnce(
    cancelled.filter(({ wasRunning, admission }) => wasRunning || admission !== null),
    NOTICES_AT_ONCE,
    ({ turnId, at }) => notifyWorkflow(deps, { turnId, organizationId, hasEnded: true, noticeDueAt: at }),
  )
  if (cancelled.some(({ admission }) => admission !== null)) admitSoon(deps, organizationId)
}

/** The reason for cancelling turns, and whether the session becomes idle when no turn is left. */
type Cancellation = { reason: string; afterwards: 'idles' | 'goes_on' }

type Unfinished = {
  id: string
  status: TurnStatus
  admission: TurnAdmission | null
  iterations: number
  inputTokens: bigint
  outputTokens: bigint
  cacheReadTokens: bigint
  cacheCreationTokens: bigint
}

/**
 * Ends the session's unfinished turns, or only `turnIds`, as cancelled, oldest first. Each one keeps the part of its
 * answer that was streamed, and its open calls get results. With `idles` the session becomes idle when no turn follows.
 */
export async function cancelUnfinished(
  session: LockedSession,
  { turnIds, ...cancellation }: { turnIds?: string[] | undefined } & Cancellation,
): Promise<Cancelled[]> {
  const turns: Unfinished[] = await session.db.turn.findMany({
    where: { sessionId: session.id, finishedAt: null, ...(turnIds && { id: { in: turnIds } }) },
    orderBy: { inputSequence: 'asc' },
  })
  const endings = await Promise.all(
    turns.map(async (turn) => ({ turnId: turn.id, events: await cancelling(session, turn, cancellation) })),
  )
  const appended = await session.appendOf(endings)
  return turns.flatMap(({ id, status, admission }, index) => {
    const one = appended[index]
    return one?.outcome === 'appended' ? [{ turnId: id, wasRunning: status !== 'queued', admission, at: one.at }] : []
  })
}

async function cancelling(
  session: LockedSession,
  turn: Unfinished,
  { reason, afterwards }: Cancellation,
): Promise<NewEvent[]> {
  const usage = presentUsage(turn)
  const turn_id = toId('turn', turn.id)
  // A queued turn has no partial answer and no open calls.
  const open = turn.status === 'queued' ? [] : await closeOpen(session, turn.id)
  const cancelled: NewEvent = { type: 'turn.cancelled', data: { turn_id, reason, usage } }
  if (afterwards === 'goes_on') return [...open, cancelled]
  return [...open, cancelled, { type: 'session.idled', data: { turn_id, iterations: turn.iterations, usage } }]
}

const closeOpen = async (session: LockedSession, turnId: string): Promise<NewEvent[]> => [
  ...(await interrupted(session, turnId)),
  ...(await endOpenCalls(session.db, turnId, 'The turn was cancelled.')),
]

/** Turns the streamed part of an interrupted answer into a message, so that the conversation does not lose it. */
async function interrupted({ db, id: sessionId }: LockedSession, turnId: string): Promise<NewEvent[]> {
  const [row] = await db.$queryRaw<Interrupted[]>`
    SELECT last.step, last.exec_id AS "execId", last.data ->> 'model' AS model, reason.data -> 'metadata' AS "modelMetadata",
      (SELECT controls #>> '{reasoning,effort}' FROM turns WHERE id = ${turnId}::uuid) AS effort,
      (SELECT string_agg(data ->> 'delta', '' ORDER BY sequence) FROM events
        WHERE session_id = ${sessionId}::uuid AND sequence > last.sequence AND exec_id = last.exec_id
          AND type = 'output.message.delta') AS text
    FROM (
      SELECT step, exec_id, sequence, data FROM events
      WHERE session_id = ${sessionId}::uuid AND turn_id = ${turnId}::uuid AND type = 'output.message.started'
      ORDER BY sequence DESC LIMIT 1
    ) AS last
    JOIN events reason ON reason.turn_id = ${turnId}::uuid AND reason.type = 'reason.started' AND reason.step = last.step
    WHERE NOT EXISTS (
      SELECT FROM events
      WHERE turn_id = ${turnId}::uuid AND type IN ('output.message.completed', 'reason.completed') AND step = last.step
    )`
  if (!row?.text) return []
  const { step, execId, model, modelMetadata, effort, text } = row
  const metadata = { model, ...(effort === null ? {} : { reasoning_effort: effort }), interrupted: true }
  const message = { id: toId('message', newUuid()), role: 'agent', content: [{ type: 'text', text }], metadata }
  return [{ type: 'output.message.completed', step, execId, data: { message, metadata: modelMetadata } }]
}

type Interrupted = {
  step: string
  execId: string
  model: string
  modelMetadata: Record<string, unknown>
  effort: string | null
  text: string | null
}
