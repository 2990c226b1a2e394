import type { Prisma, Schedule } from '../../../prisma/generated/client.ts'
import type { OrganizationScope } from '../../kit/actor.ts'
import { invalid, notFound } from '../../kit/errors.ts'
import { toId } from '../../kit/ids.ts'

/** Locks and reads a schedule of the organization. Throws `not_found`. */
export async function lockSchedule(
  tx: Prisma.TransactionClient,
  { organizationId }: OrganizationScope,
  id: string,
): Promise<Schedule> {
  await tx.$queryRaw`
    SELECT 1 FROM schedules WHERE id = ${id}::uuid AND organization_id = ${organizationId}::uuid FOR NO KEY UPDATE`
  const row = await tx.schedule.findFirst({ where: { id, organizationId, deletedAt: null } })
  if (row === null) throw notFound('Schedule')
  return row
}

/**
 * Prevents the deletion of a schedule's target session until the transaction ends: a later deletion then finds the
 * schedule. Does not wait for locks, because a deletion of the session may wait for the schedule. Throws `invalid` if
 * the session does not exist or is being deleted.
 */
export async function lockTargetedSession(
  tx: Prisma.TransactionClient,
  { organizationId }: OrganizationScope,
  sessionId: string,
): Promise<void> {
  const rows = await tx.$queryRaw<unknown[]>`
    SELECT 1 FROM sessions WHERE id = ${sessionId}::uuid AND organization_id = ${organizationId}::uuid
    FOR KEY SHARE SKIP LOCKED`
  if (rows.length === 0) throw invalid(`target.input.session_id: there is no session ${toId('session', sessionId)}`)
}
