import type { Deps } from '../../domain/deps.ts'
import { DEFAULT_ORGANIZATION_UUID, newUuid } from '../../domain/kit/ids.ts'
import type { Prisma, Schedule } from '../../prisma/generated/client.ts'

type Given = Partial<Prisma.ScheduleCreateManyInput> & { organizationId: string }

/** Inserts schedules that do nothing directly into the record, without a clock, and returns their ids. */
export async function insertSchedules(
  { db }: Pick<Deps, 'db'>,
  count: number,
  given: (number: number) => Given,
): Promise<string[]> {
  const data = Array.from({ length: count }, (_, number) => {
    const id = newUuid()
    const target = { targetType: 'activity', targetName: 'noop', targetInput: {} }
    const times = { cronExpression: '0 0 1 1 *', timezone: 'UTC', catchUpMissed: false, clockDueAt: null }
    return { id, name: `schedule ${id}`, ...times, ...target, ...given(number) }
  })
  await db.schedule.createMany({ data })
  return data.map(({ id }) => id)
}

/** Inserts one, of the default organization if none is given, and returns its row. */
export async function insertSchedule(deps: Pick<Deps, 'db'>, given: Partial<Given> = {}): Promise<Schedule> {
  const [id = ''] = await insertSchedules(deps, 1, () => ({ organizationId: DEFAULT_ORGANIZATION_UUID, ...given }))
  return deps.db.schedule.findUniqueOrThrow({ where: { id } })
}

type GivenExecution = Partial<Prisma.ScheduleExecutionCreateManyInput>

/** Inserts an execution directly into the record, without running it, and returns its id. */
export async function insertExecution(
  { db }: Pick<Deps, 'db'>,
  scheduleId: string,
  given: GivenExecution = {},
): Promise<string> {
  const { organizationId } = await db.schedule.findUniqueOrThrow({ where: { id: scheduleId } })
  const data = { id: newUuid(), organizationId, scheduleId, scheduledAt: new Date(), isManual: true }
  const { id } = await db.scheduleExecution.create({ data: { status: 'pending', ...data, ...given } })
  return id
}
