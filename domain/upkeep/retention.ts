import type { RetentionOutcome } from '../../workflows/messages.ts'
import { forgetSeeds } from '../identity/auth/api-keys.ts'
import { deleteOldLogins } from '../identity/auth/log-in.ts'
import { deleteOldInvitations, forgetInvitationSeeds } from '../identity/invitations/retention.ts'
import { deleteOldEntries } from '../kit/audit/retention.ts'
import { deleteOldKeys } from '../kit/idempotency-keys.ts'
import { deleteOldOrganizationEvents } from '../organization-events/retention.ts'
import { deleteOldDeliveries } from '../organization-events/webhooks/retention.ts'
import { deleteOldExecutions, removeDeletedSchedules } from '../schedules/retention.ts'
import { deleteUnusedContents } from '../session-data/files/spaces.ts'
import { deleteAbandonedUploads } from '../session-data/images/retention.ts'
import { deleteOldSnapshots } from '../session-data/snapshots.ts'
import { deleteOldLeases } from '../turns/control/leases.ts'
import type { Deps } from './deps.ts'
import { deleteOldSessions } from './session-deletion/retention.ts'

/** Number of turns processed together. */
const PAGE = 200
/** Maximum number of events read by one statement, far below its limit of 30 s. A larger step has its own statement. */
const BATCH_EVENTS = 20_000
/** Time limit of a run in ms, so that it stops before Temporal times it out. The next run continues. */
const RUN_MS = 8 * 60_000

/** Deletes everything whose retention time is over. Safe to run at any time, to run concurrently, and to be killed. */
export async function deleteExpired(deps: Deps, signal: AbortSignal): Promise<RetentionOutcome> {
  await deleteOldLogins(deps, signal)
  await deleteOldInvitations(deps, signal)
  await deleteOldKeys(deps, deps.retention.idempotencyKeysMs, signal)
  await forgetSeeds(deps, deps.retention.idempotencyKeysMs)
  await forgetInvitationSeeds(deps, deps.retention.idempotencyKeysMs)
  await deleteOldEntries(deps, deps.retention.auditMs, signal)
  await deleteAbandonedUploads(deps, signal)
  await deleteOldExecutions(deps, deps.retention.executionsMs, signal)
  await removeDeletedSchedules(deps, signal)
  await deleteOldOrganizationEvents(deps, deps.retention.organizationEventsMs, signal)
  await deleteOldLeases(deps, signal)
  await deleteOldDeliveries(deps, deps.retention.deliveriesMs, signal)
  const deleted = await deleteOldDeltas(deps, deps.retention.deltasMs, signal)
  await deleteOldSessions(deps, deps.retention.sessionsMs, signal)
  await deleteOldSnapshots(deps, signal)
  await deleteUnusedContents(deps, signal)
  return deleted
}

/**
 * Deletes the deltas of messages and the progress of calls that have been complete for `olderThanMs`, and all deltas of
 * turns that ended as long ago. The deltas of an unfinished message are kept: cancelling makes a message of them, and a
 * reader that begins in the middle needs them for `accumulated`. Throws the signal's reason when it aborts.
 */
export async function deleteOldDeltas(deps: Deps, olderThanMs: number, signal: AbortSignal): Promise<RetentionOutcome> {
  const until = performance.now() + RUN_MS
  const cutoff = await readCutoff(deps, olderThanMs)
  const deleted = { turns: 0, deltas: 0 }
  for (let page = await readTurns(deps, cutoff); page.length > 0; page = await readTurns(deps, cutoff, page.at(-1))) {
    for (const spans of inBatches(await readSpans(deps, cutoff, page))) {
      if (performance.now() > until) return { ...deleted, more: true }
      signal.throwIfAborted()
      deleted.deltas += await deleteDeltas(deps, spans)
    }
    deleted.turns += await markTurns(deps, page)
  }
  return { ...deleted, more: false }
}

/** Range of events of a turn that has begun. `to` is 0 before its end. `isOver`: it ended before the cutoff. */
type OldTurn = { id: string; sessionId: string; startedAt: Date; isOver: boolean; from: number; to: number }

/** Events of a turn between two sequences, both exclusive. An empty `step` stands for all steps. */
type Span = { sessionId: string; turnId: string; step: string; from: number; to: number }

/** Returns the cutoff by the database's clock, which also dates the events. */
async function readCutoff(deps: Deps, olderThanMs: number): Promise<string> {
  const rows = await deps.db.$queryRaw<{ cutoff: Date }[]>`
    SELECT now() - make_interval(secs => ${olderThanMs / 1000}) AS cutoff`
  return (rows[0]?.cutoff ?? new Date(0)).toISOString()
}

/**
 * Reads a page of turns with deltas to delete. Between a turn's start and end there are only its own events and
 * messages queued behind it.
 */
function readTurns(deps: Deps, cutoff: string, after?: OldTurn): Promise<OldTurn[]> {
  return deps.db.$queryRaw<OldTurn[]>`
    SELECT id, session_id AS "sessionId", started_at AS "startedAt",
      coalesce(finished_at < ${cutoff}::timestamptz, false) AS "isOver",
      (SELECT sequence FROM events WHERE turn_id = turns.id AND type = 'turn.started') AS "from",
      (SELECT coalesce(max(sequence), 0) FROM events
        WHERE turn_id = turns.id AND type IN ('turn.completed', 'turn.failed', 'turn.cancelled')) AS "to"
    FROM turns
    WHERE NOT deltas_deleted AND started_at < ${cutoff}::timestamptz
      AND (started_at, id) > (
        ${after?.startedAt.toISOString() ?? '-infinity'}::timestamptz,
        ${after?.id ?? '00000000-0000-0000-0000-000000000000'}::uuid
      )
    ORDER BY started_at, id LIMIT ${PAGE}`
}

/** Returns the spans to delete. A turn that is over is one span; a large one is first deleted step by step. */
async function readSpans(deps: Deps, cutoff: string, turns: OldTurn[]): Promise<Span[]> {
  const stepwise = turns.filter(({ isOver, from, to }) => !isOver || to - from > BATCH_EVENTS)
  const whole = turns.filter(({ isOver }) => isOver)
  return [
    ...(await readSteps(deps, cutoff, stepwise)),
    ...whole.map(({ sessionId, id, from, to }) => ({ sessionId, turnId: id, step: '', from, to })),
  ]
}

/**
 * Reads the steps whose message, or whose calls, have been complete for long enough, regardless of the turn's status.
 * Between the beginning and the end of calls, the only deltas are their progress.
 */
async function readSteps(deps: Deps, cutoff: string, turns: OldTurn[]): Promise<Span[]> {
  if (turns.length === 0) return []
  return deps.db.$queryRaw<Span[]>`
    SELECT begun.session_id AS "sessionId", begun.turn_id AS "turnId",
      CASE begun.type WHEN 'act.started' THEN '' ELSE begun.step END AS step, begun.sequence AS "from",
      max(complete.sequence) AS "to"
    FROM events begun
    JOIN events complete ON complete.turn_id = begun.turn_id AND complete.step = begun.step
      AND complete.type IN ('output.message.completed', 'reason.completed', 'act.completed')
      AND complete.ts < ${cutoff}::timestamptz
    WHERE begun.turn_id = ANY (${turns.map(({ id }) => id)}::uuid[]) AND begun.type IN ('reason.started', 'act.started')
    GROUP BY begun.session_id, begun.sequence
    ORDER BY begun.session_id, begun.sequence`
}

function inBatches(spans: Span[]): Span[][] {
  const batches: Span[][] = []
  let events = Number.POSITIVE_INFINITY
  for (const span of spans) {
    events += span.to - span.from
    if (events > BATCH_EVENTS) {
      batches.push([])
      events = span.to - span.from
    }
    batches.at(-1)?.push(span)
  }
  return batches
}

/**
 * Deletes the deltas of the spans in one statement, so that no reader sees only part of a message's deltas. Looks up
 * each span separately: OFFSET prevents a join, which might read the whole table. Deletes rows by ctid.
 */
function deleteDeltas(deps: Deps, spans: Span[]): Promise<number> {
  return deps.db.$executeRaw`
    DELETE FROM events WHERE ctid = ANY (ARRAY(
      SELECT delta.ctid
      FROM unnest(
        ${spans.map(({ sessionId }) => sessionId)}::uuid[], ${spans.map(({ turnId }) => turnId)}::uuid[],
        ${spans.map(({ step }) => step)}::text[],
        ${spans.map(({ from }) => from)}::int[], ${spans.map(({ to }) => to)}::int[]
      ) AS span (session_id, turn_id, step, after, before)
      CROSS JOIN LATERAL (
        SELECT ctid FROM events
        WHERE session_id = span.session_id AND sequence > span.after AND sequence < span.before
          AND turn_id = span.turn_id AND span.step IN ('', step)
          AND type IN ('output.message.delta', 'reason.thinking.delta', 'tool.progress')
        OFFSET 0
      ) AS delta
    ))`
}

/** Marks the ended turns as done. They get no further events, so they need not be checked again. */
async function markTurns(deps: Deps, turns: OldTurn[]): Promise<number> {
  const ids = turns.filter(({ isOver }) => isOver).map(({ id }) => id)
  if (ids.length === 0) return 0
  // Skips a turn that is locked for deletion with its session: that transaction may wait for another of these turns.
  return deps.db.$executeRaw`
    UPDATE turns SET deltas_deleted = true WHERE id IN (
      SELECT id FROM turns WHERE id = ANY (${ids}::uuid[]) AND NOT deltas_deleted FOR NO KEY UPDATE SKIP LOCKED
    )`
}
