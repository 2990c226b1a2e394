import type { Prisma } from '../../prisma/generated/client.ts'
import type { Actor, OrganizationScope } from '../kit/actor.ts'
import { audit } from '../kit/audit/entry.ts'
import { lockSchedule } from './clock/lock.ts'
import { syncClock } from './clock/sync.ts'
import type { Deps } from './deps.ts'

/**
 * Deletes a schedule. Begun executions continue, and the target is kept until they end. Without any, the target is
 * erased at once. Throws `not_found`.
 */
export async function deleteSchedule(deps: Deps, scope: Actor | OrganizationScope, id: string): Promise<void> {
  await deps.db.$transaction(async (tx) => {
    await lockSchedule(tx, scope, id)
    await deleteLocked(tx, scope, id)
    await audit(tx, scope, { action: 'schedule.delete', target: id })
  })
  await syncClock(deps, id)
}

/**
 * Marks a schedule as deleted, so that no execution is launched any more. The transaction has locked it by an earlier
 * statement, so that this one sees the executions of a launch that held the lock.
 */
export async function deleteLocked(
  tx: Prisma.TransactionClient,
  { organizationId }: OrganizationScope,
  id: string,
): Promise<void> {
  await tx.$executeRaw`
    UPDATE schedules AS s SET
      deleted_at = clock_timestamp(), updated_at = clock_timestamp(), enabled = false, tool_name = NULL,
      revision = revision + 1, clock_due_at = clock_timestamp(),
      name = CASE WHEN is_busy THEN s.name ELSE s.id::text END,
      description = CASE WHEN is_busy THEN s.description END,
      target_input = CASE WHEN is_busy THEN s.target_input ELSE '{}' END,
      target_headers = CASE WHEN is_busy THEN s.target_headers END
    FROM (
      SELECT EXISTS (
        SELECT FROM schedule_executions
        WHERE organization_id = ${organizationId}::uuid AND schedule_id = ${id}::uuid
          AND status IN ('pending', 'running')
      ) AS is_busy
    ) AS executions
    WHERE s.id = ${id}::uuid`
}
