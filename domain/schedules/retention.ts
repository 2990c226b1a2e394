import { deleteInBatches } from '../../lib/delete-in-batches.ts'
import { waitForLocks } from '../kit/wait-for-locks.ts'
import type { Deps } from './deps.ts'

/** Maximum number of deleted schedules that one statement erases or removes. Each may have megabytes. */
const SCHEDULES = 100

/**
 * Deletes the executions that were recorded `olderThanMs` ago and have ended or were skipped. Returns their number.
 * Throws the signal's reason when it aborts.
 */
export const deleteOldExecutions = (deps: Deps, olderThanMs: number, signal: AbortSignal): Promise<number> =>
  deleteInBatches(signal, (limit) => {
    const deleteSome = () => deleteExecutions(deps, olderThanMs, limit)
    return waitForLocks(deleteSome, 'The counts of executions are', signal)
  })

/**
 * Waits less for a lock than Postgres's deadlock timeout of a second. A batch changes the counts of many schedules, and
 * so may a session whose turns are cancelled, in another order.
 */
async function deleteExecutions({ db }: Deps, olderThanMs: number, limit: number): Promise<number> {
  const [, deleted] = await db.$transaction([
    db.$executeRaw`SELECT set_config('lock_timeout', '500ms', true)`,
    db.$executeRaw`
      DELETE FROM schedule_executions WHERE id IN (
        SELECT id FROM schedule_executions
        WHERE created_at < now() - make_interval(secs => ${olderThanMs / 1000})
          AND status IN ('completed', 'failed', 'skipped') AND notice_due_at IS NULL
        ORDER BY created_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
      )`,
  ])
  return deleted
}

/**
 * Erases the texts of deleted schedules whose executions have all ended, and removes deleted schedules without
 * executions and clock. Returns how many were removed. Throws the signal's reason when it aborts.
 */
export async function removeDeletedSchedules(deps: Deps, signal: AbortSignal): Promise<number> {
  await deleteInBatches(signal, (limit) => eraseTexts(deps, limit), SCHEDULES)
  return deleteInBatches(
    signal,
    (limit) => deps.db.$executeRaw`
      DELETE FROM schedules WHERE id IN (
        SELECT id FROM schedules
        WHERE deleted_at IS NOT NULL AND clock_due_at IS NULL
          AND NOT EXISTS (SELECT FROM schedule_executions WHERE schedule_id = schedules.id)
        ORDER BY deleted_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
      )`,
    SCHEDULES,
  )
}

const eraseTexts = ({ db }: Deps, limit: number): Promise<number> =>
  db.$executeRaw`
    UPDATE schedules SET
      name = id::text, tool_name = NULL, description = NULL, target_input = '{}', target_headers = NULL
    WHERE id IN (
      SELECT id FROM schedules
      WHERE deleted_at IS NOT NULL
        AND (name <> id::text OR description IS NOT NULL OR target_headers IS NOT NULL OR target_input <> '{}')
        AND NOT EXISTS (
          SELECT FROM schedule_executions WHERE schedule_id = schedules.id AND status IN ('pending', 'running')
        )
      ORDER BY deleted_at LIMIT ${limit} FOR NO KEY UPDATE SKIP LOCKED
    )`
