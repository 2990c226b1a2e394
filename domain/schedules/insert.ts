import type { Prisma, Schedule } from '../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { conflict } from '../errors.ts'
import { lockOrganization } from '../lock-organization.ts'
import { lockTargetedSession } from './lock.ts'

/** Row of a new schedule, whose cron expression, time zone and target have been checked. */
export type NewSchedule = Prisma.ScheduleCreateManyInput &
  Pick<Schedule, 'id' | 'organizationId' | 'name' | 'sessionId'>

/**
 * Inserts a schedule; undefined when another run of the request has created it. `syncClock` has to be called after the
 * commit. Throws `invalid` when the session that it targets is gone, and `conflict` for a taken name and at the quota.
 */
export async function insertSchedule(
  { quotas }: Deps,
  tx: Prisma.TransactionClient,
  row: NewSchedule,
): Promise<Schedule | undefined> {
  const { organizationId, name, sessionId } = row
  if (sessionId !== null) await lockTargetedSession(tx, row, sessionId)
  await lockOrganization(tx, organizationId)
  const { maxCount } = quotas.schedules
  if ((await tx.schedule.count({ where: { organizationId, deletedAt: null } })) >= maxCount) {
    throw conflict(`The organization has ${maxCount} schedules, as many as it can; delete one first`)
  }
  if ((await tx.schedule.count({ where: { organizationId, name, deletedAt: null } })) > 0) {
    throw conflict(`name: the organization has a schedule of that name already; choose another name`)
  }
  const [inserted] = await tx.schedule.createManyAndReturn({ data: [row], skipDuplicates: true })
  return inserted
}
