import type { SessionId, TurnId } from '../../../contract/kit/ids.ts'
import type { CancelTurnResponse } from '../../../contract/turns.ts'
import { atOnce } from '../../../lib/at-once.ts'
import type { Prisma, TurnAdmission, TurnStatus } from '../../../prisma/generated/client.ts'
import type { NewEvent } from '../../events/log/append.ts'
import {
  type LockedSession,
  type LockedSessions,
  withLockedSession,
  withLockedSessions,
} from '../../events/log/transaction.ts'
import type { Actor, OrganizationScope } from '../../kit/actor.ts'
import { type Audited, audit } from '../../kit/audit/entry.ts'
import { noSession, notFound } from '../../kit/errors.ts'
import { newUuid, toId } from '../../kit/ids.ts'
import { presentUsage } from '../../kit/usage.ts'
import { endOpenCalls } from '../calls.ts'
import type { Deps } from '../deps.ts'
import { admitSoon } from '../run/turn-admission.ts'
import { startTurnSoon } from '../start.ts'
import type { TurnPlace } from '../turn-place.ts'
import { notifyWorkflow } from './workflow-outbox.ts'

/** A cancelled turn, with the data to notify its workflow once the transaction is committed. */
export type Cancelled = {
  turnId: string
  sessionId: string
  wasRunning: boolean
  admission: TurnAdmission | null
  at: Date
}

const NOTICES_AT_ONCE = 16

const USER_REASON = 'cancelled by the user'
const OPERATOR_REASON = 'cancelled in Temporal'
const PARENT_REASON = 'cancelled with the turn that asked'

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

/**
 * Cancels the turn of a workflow that was cancelled in Temporal, or whose call has ended. Does nothing when the turn has
 * ended.
 */
export async function cancelOwnTurn(deps: Deps, turn: TurnPlace): Promise<void> {
  const { turnId: id, ...where } = turn
  const row = await deps.db.turn.findFirst({ where: { ...where, id, finishedAt: null }, select: { ancestors: true } })
  // Most were cancelled in the record, and then in Temporal.
  if (row === null) return
  const parent = row.ancestors.at(-1)
  const isLeft = parent !== undefined && (await deps.db.turn.count({ where: { id: parent, finishedAt: null } })) === 0
  const reason = isLeft ? PARENT_REASON : OPERATOR_REASON
  notifyCancelled(deps, turn.organizationId, (await cancelAndGoOn(deps, turn, [id], { reason })) ?? [])
}

async function hasTurn(deps: Deps, where: { organizationId: string; sessionId: string }, id: string) {
  return (await deps.db.turn.count({ where: { ...where, id } })) > 0
}

/**
 * Cancels a session's unfinished turns, or only `turnIds`, and starts the next one in the queue. Their workflows
 * are still to be notified. Returns undefined without a session.
 */
async function cancelAndGoOn(
  deps: Deps,
  where: { organizationId: string; sessionId: string },
  turnIds: string[] | undefined,
  { reason, actor = where }: { reason: string; actor?: Actor | OrganizationScope },
): Promise<Cancelled[] | undefined> {
  const done = await withLockedSession(deps, where, (session) => endAndTell(session, actor, { turnIds, reason }))
  return done && startNextOnes(deps, where.organizationId, done)
}

/**
 * Cancels turns of several sessions in one transaction, and starts the next ones in their queues. Their workflows are
 * still to be notified. Rejects when others hold a lock for more than `lockMs`: it holds locks that others need meanwhile,
 * and should two wait for each other, this is to give up before Postgres chooses.
 */
export async function cancelOfSessions(
  deps: Deps,
  actor: Actor,
  { turnIds, ...where }: { sessionIds: string[]; turnIds: string[]; lockMs: number },
): Promise<Cancelled[]> {
  const { organizationId } = actor
  const done = await withLockedSessions(deps, { organizationId, ...where }, async (sessions) => {
    await lockEnds(sessions.db, turnIds)
    return endAndTell(sessions, actor, { turnIds, reason: USER_REASON })
  })
  return startNextOnes(deps, organizationId, done)
}

/** Locks what the ends of turns of several sessions change, in the order in which the end of one turn locks it. */
async function lockEnds(db: Prisma.TransactionClient, turnIds: string[]): Promise<void> {
  await db.$queryRaw`SELECT 1 FROM turns WHERE id = ANY (${turnIds}::uuid[]) ORDER BY id FOR NO KEY UPDATE`
  await db.$queryRaw`
    SELECT 1 FROM schedule_counts WHERE schedule_id IN (
      SELECT schedule_id FROM schedule_executions WHERE id = ANY (${turnIds}::uuid[])
    ) ORDER BY schedule_id, status FOR NO KEY UPDATE`
  await db.$queryRaw`
    SELECT 1 FROM budgets WHERE id IN (SELECT budgets_counting(t) FROM turns t WHERE t.id = ANY (${turnIds}::uuid[]))
    ORDER BY id FOR NO KEY UPDATE`
}

async function endAndTell(
  sessions: LockedSessions,
  actor: Actor | OrganizationScope,
  { turnIds, reason }: { turnIds: string[] | undefined; reason: string },
): Promise<Ended> {
  const ended = await endUnfinished(sessions, { turnIds, reason, afterwards: 'idles' })
  const told = ended.cancelled.map(({ turnId, sessionId }): Audited => {
    return { action: 'turn.cancel', target: turnId, details: { session_id: toId('session', sessionId) } }
  })
  await audit(sessions.db, actor, ...told)
  return ended
}

/** Starts the turns that are now at the head of their queues. Returns the cancelled ones. */
function startNextOnes(deps: Deps, organizationId: string, { cancelled, next }: Ended): Cancelled[] {
  for (const turn of next) startTurnSoon(deps, { organizationId, ...turn }, 'early')
  return cancelled
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
  sessionId: string
  status: TurnStatus
  admission: TurnAdmission | null
  iterations: number
  inputTokens: bigint
  outputTokens: bigint
  cacheReadTokens: bigint
  cacheCreationTokens: bigint
}

type CancellationOf = { turnIds?: string[] | undefined } & Cancellation

/**
 * Ends the session's unfinished turns, or only `turnIds`, as cancelled, oldest first. Each one keeps the part of its
 * answer that was streamed, and its open calls get results. With `idles` the session becomes idle when no turn follows.
 */
export const cancelUnfinished = async (session: LockedSession, cancellation: CancellationOf): Promise<Cancelled[]> =>
  (await endUnfinished(session, cancellation)).cancelled

/** The cancelled turns, and of each session that has lost one the turn that is to start next. */
type Ended = { cancelled: Cancelled[]; next: { sessionId: string; turnId: string; agentId: string | null }[] }

async function endUnfinished(
  { sessions, db, appendOf }: LockedSessions,
  { turnIds, ...cancellation }: CancellationOf,
): Promise<Ended> {
  const turns: Unfinished[] = await db.turn.findMany({
    where: {
      sessionId: { in: sessions.map(({ id }) => id) },
      finishedAt: null,
      ...(turnIds && { id: { in: turnIds } }),
    },
    orderBy: [{ sessionId: 'asc' }, { inputSequence: 'asc' }],
  })
  const closing = await closeOpen(db, turns)
  const appended = await appendOf(
    turns.map((turn) => {
      const events = [...(closing.get(turn.id) ?? []), ...cancelling(turn, cancellation)]
      return { sessionId: turn.sessionId, turnId: turn.id, events }
    }),
  )
  const next = new Map<string, string | null>()
  const cancelled = turns.flatMap(({ id, sessionId, status, admission }, index) => {
    const one = appended[index]
    if (one?.outcome !== 'appended') return []
    next.set(sessionId, one.nextTurnId)
    return [{ turnId: id, sessionId, wasRunning: status !== 'queued', admission, at: one.at }]
  })
  return {
    cancelled,
    next: sessions.flatMap(({ id, agentId }) => {
      const turnId = next.get(id)
      return turnId ? [{ sessionId: id, turnId, agentId }] : []
    }),
  }
}

function cancelling(turn: Unfinished, { reason, afterwards }: Cancellation): NewEvent[] {
  const usage = presentUsage(turn)
  const turn_id = toId('turn', turn.id)
  const cancelled: NewEvent = { type: 'turn.cancelled', data: { turn_id, reason, usage } }
  if (afterwards === 'goes_on') return [cancelled]
  return [cancelled, { type: 'session.idled', data: { turn_id, iterations: turn.iterations, usage } }]
}

/**
 * Returns events by turn that end its open calls, and that turn the streamed part of an interrupted answer into a message, so
 * that it is not lost. A queued turn has neither.
 */
async function closeOpen(db: Prisma.TransactionClient, turns: Unfinished[]): Promise<Map<string, NewEvent[]>> {
  const begun = turns.filter(({ status }) => status !== 'queued')
  if (begun.length === 0) return new Map()
  const rows = await db.$queryRaw<Open[]>`
    SELECT t.id AS "turnId", t.controls #>> '{reasoning,effort}' AS effort, answer.*,
      EXISTS (SELECT FROM events WHERE turn_id = t.id AND type = 'act.started') AS "hasCalls"
    FROM turns t LEFT JOIN LATERAL (
      SELECT last.step, last.exec_id AS "execId", last.data ->> 'model' AS model, reason.data -> 'metadata' AS "modelMetadata",
        (SELECT string_agg(data ->> 'delta', '' ORDER BY sequence) FROM events
          WHERE session_id = t.session_id AND sequence > last.sequence AND exec_id = last.exec_id
            AND type = 'output.message.delta') AS text
      FROM (
        SELECT step, exec_id, sequence, data FROM events
        WHERE session_id = t.session_id AND turn_id = t.id AND type = 'output.message.started'
        ORDER BY sequence DESC LIMIT 1
      ) AS last
      JOIN events reason ON reason.turn_id = t.id AND reason.type = 'reason.started' AND reason.step = last.step
      WHERE NOT EXISTS (
        SELECT FROM events
        WHERE turn_id = t.id AND type IN ('output.message.completed', 'reason.completed') AND step = last.step
      )
    ) AS answer ON true
    WHERE t.id = ANY (${begun.map(({ id }) => id)}::uuid[])`
  const closing = new Map<string, NewEvent[]>()
  for (const { turnId, hasCalls, ...answer } of rows) {
    const calls = hasCalls ? await endOpenCalls(db, turnId, 'The turn was cancelled.') : []
    closing.set(turnId, [...interrupted(answer), ...calls])
  }
  return closing
}

function interrupted({ step, execId, model, modelMetadata, effort, text }: Partial<Interrupted>): NewEvent[] {
  if (!text || !step || !execId) return []
  const metadata = { model, ...(effort == null ? {} : { reasoning_effort: effort }), interrupted: true }
  const message = { id: toId('message', newUuid()), role: 'agent', content: [{ type: 'text', text }], metadata }
  return [{ type: 'output.message.completed', step, execId, data: { message, metadata: modelMetadata } }]
}

type Open = { turnId: string; hasCalls: boolean } & Partial<Interrupted>
type Interrupted = {
  step: string
  execId: string
  model: string
  modelMetadata: Record<string, unknown>
  effort: string | null
  text: string | null
}
