import type { ScheduleId } from '../../contract/ids.ts'
import type { Actor } from '../actor.ts'
import type { Deps } from '../deps.ts'
import { lockSchedule } from './lock.ts'
import { syncClock } from './sync.ts'

/**
 * Deletes a schedule. Executions that have begun go on, and what they need is kept until then; otherwise what the
 * schedule would have said is erased at once. Throws `not_found`.
 */
export async function deleteSchedule(deps: Deps, actor: Actor, id: ScheduleId): Promise<void> {
  await deps.db.$transaction(async (tx) => {
    // In a statement of its own, so that the next one sees the executions of a launch that had the lock.
    await lockSchedule(tx, actor, id)
    await tx.$executeRaw`
      UPDATE schedules AS s SET
        deleted_at = clock_timestamp(), enabled = false, revision = revision + 1, clock_due_at = clock_timestamp(),
        description = CASE WHEN is_busy THEN s.description END,
        target_input = CASE WHEN is_busy THEN s.target_input ELSE '{}' END,
        target_headers = CASE WHEN is_busy THEN s.target_headers END,
        session_id = CASE WHEN is_busy THEN s.session_id END
      FROM (
        SELECT EXISTS (
          SELECT FROM schedule_executions
          WHERE organization_id = ${actor.organizationId}::uuid AND schedule_id = ${id}::uuid
            AND status IN ('pending', 'running')
        ) AS is_busy
      ) AS executions
      WHERE s.id = ${id}::uuid`
  })
  await syncClock(deps, id)
}
