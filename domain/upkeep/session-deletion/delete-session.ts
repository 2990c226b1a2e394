import { setTimeout as sleep } from 'node:timers/promises'
import { warnRarely } from '../../../lib/warn-rarely.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import { publishDeletion } from '../../events/live/live-stream.ts'
import { steerSteps } from '../../events/log/steps.ts'
import { type LockedSession, withLockedSession } from '../../events/log/transaction.ts'
import type { Actor } from '../../kit/actor.ts'
import { audit } from '../../kit/audit/entry.ts'
import { noSession, unlessGone } from '../../kit/errors.ts'
import { toId } from '../../kit/ids.ts'
import { cancelUnfinished } from '../../turns/control/cancel.ts'
import { admitSoon } from '../../turns/run/turn-admission.ts'
import type { Deps } from '../deps.ts'
import { deleteOwnedData } from './owned-data.ts'

type Deleted = { id: string; turnIds: string[] }
/** A deletion in its own transaction. `hadPlaces`: some turns had or waited for places among the turns that run at once. */
type Locked = Deleted & { hadPlaces: boolean }

/** Decides about a session once it is locked, in the transaction of its deletion. */
type MayDelete = (db: Prisma.TransactionClient) => Promise<boolean>

/** Stands for their owner, whom the record has forgotten. */
const OF_DELETED = 'deleted sessions'

/** Maximum time that a caller waits for the deletion of the session's data. The rest is deleted in the background. */
const MAX_WAITING_MS = 10_000

/**
 * Cancels the session's running, waiting and queued turns, and deletes the session, in one transaction. It then no
 * longer exists for anyone, and its streams end. Afterwards its data is removed and the workflows of its turns are
 * notified, by the sweeper if necessary. Throws `not_found`.
 */
export const deleteSession = (deps: Deps, actor: Actor, id: string): Promise<void> =>
  deleteIf(deps, actor.organizationId, id, async (db) => {
    await audit(db, actor, { action: 'session.delete', target: id })
    return true
  })

/** Deletes a session for the service itself, unless `mayDelete` is false. It may have been deleted meanwhile. */
export const removeSession = (deps: Deps, organizationId: string, id: string, mayDelete?: MayDelete): Promise<void> =>
  unlessGone(deleteIf(deps, organizationId, id, mayDelete))

async function deleteIf(deps: Deps, organizationId: string, id: string, mayDelete?: MayDelete): Promise<void> {
  const where = { organizationId, sessionId: id }
  const deleted = await withLockedSession(deps, where, async (session) =>
    mayDelete === undefined || (await mayDelete(session.db)) ? deleteLocked(session) : 'kept',
  )
  if (deleted === undefined) throw noSession()
  if (deleted === 'kept') return
  deps.conversations.delete(deleted.id)
  publishDeletion(deps, deleted.id)
  if (deleted.hadPlaces) admitSoon(deps, organizationId)
  const removed = deleteOwnedData(deps, deleted.id)
  finish(deps, deleted, removed).catch((error: Error) => {
    const session = toId('session', id)
    warnRarely(deps.log, { session, err: error.message }, 'session deleted; cleanup will be retried by the sweeper')
  })
  await Promise.race([removed.catch(() => {}), sleep(MAX_WAITING_MS, undefined, { ref: false })])
}

async function deleteLocked(session: LockedSession): Promise<Locked> {
  // Before the counts of their executions: changes of schedules lock in the same order.
  await session.db.$queryRaw`
    SELECT 1 FROM schedules WHERE session_id = ${session.id}::uuid ORDER BY id FOR NO KEY UPDATE`
  const cancelled = await cancelUnfinished(session, { reason: 'the session was deleted', afterwards: 'goes_on' })
  const unnotified = await session.db.turn.findMany({
    where: { sessionId: session.id, OR: [{ noticeDueAt: { not: null } }, { waits: { isNot: null } }] },
    select: { id: true },
  })
  const deleted = { id: session.id, turnIds: unnotified.map(({ id }) => id) }
  await session.db.deletedSession.create({ data: deleted })
  // The stored answers contain the session's messages, a fork's beginning, its schedules, and the names of its files and databases.
  await session.db.$executeRaw`
    DELETE FROM idempotency_keys WHERE uuid IN (
      SELECT id FROM turns WHERE session_id = ${session.id}::uuid
      UNION ALL SELECT split_part(step, ':', 2)::uuid FROM events
        WHERE turn_id IN (SELECT id FROM turns WHERE session_id = ${session.id}::uuid AND steer_sequence IS NOT NULL)
          AND type = 'input.message' AND step LIKE ${`${steerSteps}%`}
      UNION ALL SELECT id FROM sessions WHERE id = ${session.id}::uuid AND forked_from_id IS NOT NULL
      UNION ALL SELECT id FROM session_files WHERE session_id = ${session.id}::uuid
      UNION ALL SELECT id FROM session_databases WHERE session_id = ${session.id}::uuid
      UNION ALL SELECT id FROM schedules WHERE session_id = ${session.id}::uuid)`
  await session.db.session.delete({ where: { id: session.id } })
  return { ...deleted, hadPlaces: cancelled.some(({ admission }) => admission !== null) }
}

async function finish(deps: Deps, { id, turnIds }: Deleted, removed: Promise<void>): Promise<void> {
  await Promise.all([removed, ...turnIds.map((turnId) => deps.workflows.cancelTurn(turnId, OF_DELETED))])
  await deps.db.deletedSession.deleteMany({ where: { id } })
}

const GRACE_MS = 15_000
const MAX_AT_ONCE = 20

/** Finishes interrupted deletions, whose process died or for which Temporal was unavailable. Returns how many. */
export async function sweepDeletedSessions(deps: Deps, signal: AbortSignal, graceMs = GRACE_MS): Promise<number> {
  const left = await deps.db.$queryRaw<Deleted[]>`
    SELECT id, turn_ids::text[] AS "turnIds" FROM deleted_sessions
    WHERE created_at < now() - make_interval(secs => ${graceMs / 1000}) ORDER BY created_at LIMIT ${MAX_AT_ONCE}`
  const ended = await Promise.allSettled(left.map((one) => finish(deps, one, deleteOwnedData(deps, one.id, signal))))
  const failed = ended.find((one) => one.status === 'rejected')
  if (failed) throw failed.reason
  return left.length
}
