import type { ScheduleId } from '../../contract/kit/ids.ts'
import type { Schedule } from '../../contract/schedules.ts'
import type { Schedule as ScheduleRow } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import { notFound } from '../kit/errors.ts'
import { readNextTimes } from './clock/next-times.ts'
import type { Deps } from './deps.ts'
import { presentSchedule } from './present.ts'

/** Returns a schedule. Throws `not_found`. */
export async function getSchedule(deps: Deps, actor: Actor, id: ScheduleId): Promise<Schedule> {
  const [schedule] = await presentSchedules(deps, [await requireSchedule(deps, actor, id)])
  if (schedule === undefined) throw notFound('Schedule')
  return schedule
}

/** Returns the row of a schedule of the organization. Throws `not_found`. */
export async function requireSchedule(deps: Deps, { organizationId }: Actor, id: ScheduleId): Promise<ScheduleRow> {
  const row = await deps.db.schedule.findFirst({ where: { id, organizationId, deletedAt: null } })
  if (row === null) throw notFound('Schedule')
  return row
}

/** Presents schedules, in their order, with their next times. */
export async function presentSchedules(deps: Deps, rows: ScheduleRow[]): Promise<Schedule[]> {
  const nextTimes = await readNextTimes(deps, rows)
  return rows.map((row) => presentSchedule(row, nextTimes.get(row.id) ?? []))
}
