import type { ScheduleId } from '../../contract/ids.ts'
import type { Schedule, UpdateScheduleRequest } from '../../contract/schedules.ts'
import type { Prisma, Schedule as ScheduleRow } from '../../prisma/generated/client.ts'
import type { Actor } from '../actor.ts'
import type { Deps } from '../deps.ts'
import { CLOCK_CHANGE, PAUSED } from './clock-change.ts'
import { checkTimezone } from './cron/check-timezone.ts'
import { parseCron } from './cron/parse.ts'
import { lockSchedule, lockTargetedSession } from './lock.ts'
import { getSchedule } from './read.ts'
import { syncClock } from './sync.ts'
import { targetColumns } from './target-columns.ts'
import { type CheckedTarget, checkTarget } from './targets/registry.ts'

type Changes = Prisma.ScheduleUncheckedUpdateInput

/**
 * Changes a schedule. Its next time is that of the change at once, and what was due before is not made up for. Throws
 * `not_found`, `invalid` as for a new schedule and for header values that cannot be kept, and `conflict` for header
 * values that are damaged.
 */
export async function patchSchedule(
  deps: Deps,
  actor: Actor,
  id: ScheduleId,
  input: UpdateScheduleRequest,
): Promise<Schedule> {
  if (input.cron_expression != null) parseCron(input.cron_expression)
  if (input.timezone != null) checkTimezone(input.timezone)
  const target = input.target == null ? undefined : await checkTarget(deps, actor, input.target)
  const isClockChanged = await deps.db.$transaction(async (tx) => {
    if (target?.sessionId != null) await lockTargetedSession(tx, actor, target.sessionId)
    const row = await lockSchedule(tx, actor, id)
    await tx.schedule.update({ where: { id }, data: changesOf(deps, row, input, target), select: { id: true } })
    return changeClock(tx, row, input)
  })
  if (isClockChanged) await syncClock(deps, id)
  return getSchedule(deps, actor, id)
}

const changesOf = (
  deps: Deps,
  row: ScheduleRow,
  input: UpdateScheduleRequest,
  target: CheckedTarget | undefined,
): Changes => ({
  ...(isSwitched(row, input) && { enabled: !row.enabled, disabledReason: row.enabled ? PAUSED : null }),
  description: input.description ?? undefined,
  cronExpression: input.cron_expression ?? undefined,
  timezone: input.timezone ?? undefined,
  catchUpMissed: input.catch_up_missed ?? undefined,
  maxCatchUp: input.max_catch_up ?? undefined,
  maxConcurrent: input.max_concurrent ?? undefined,
  retryPolicy: input.retry_policy ?? undefined,
  // Another expression may come again and again.
  ...(isMoved(row, input) && { isOneOff: false }),
  ...(target !== undefined && targetChanges(deps, row, target)),
  updatedAt: new Date(),
})

/** Who changes the target of a schedule that an agent has made takes it over: the agent no longer lists it. */
const targetChanges = (deps: Deps, row: ScheduleRow, target: CheckedTarget): Changes => ({
  ...targetColumns(deps, row.id, target, row),
  toolName: null,
})

const isMoved = (row: ScheduleRow, input: UpdateScheduleRequest): boolean =>
  (input.cron_expression ?? row.cronExpression) !== row.cronExpression ||
  (input.timezone ?? row.timezone) !== row.timezone

const isSwitched = (row: ScheduleRow, { enabled }: UpdateScheduleRequest): boolean =>
  enabled != null && enabled !== row.enabled

/** Notes a change of what the clock knows. Returns false when there is none. */
async function changeClock(
  tx: Prisma.TransactionClient,
  row: ScheduleRow,
  input: UpdateScheduleRequest,
): Promise<boolean> {
  if (!isMoved(row, input) && !isSwitched(row, input)) return false
  await tx.$executeRaw`UPDATE schedules SET ${CLOCK_CHANGE} WHERE id = ${row.id}::uuid`
  return true
}
