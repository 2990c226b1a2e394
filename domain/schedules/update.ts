import type { ScheduleId } from '../../contract/kit/ids.ts'
import type { Schedule, UpdateScheduleRequest } from '../../contract/schedules.ts'
import { warnRarely } from '../../lib/warn-rarely.ts'
import type { Prisma, Schedule as ScheduleRow } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import { audit, givenFields } from '../kit/audit/entry.ts'
import { launchDue } from './clock/launch.ts'
import { lockSchedule, lockTargetedSession } from './clock/lock.ts'
import { syncClock } from './clock/sync.ts'
import { nameTaken, policyColumn } from './create.ts'
import { checkTimezone } from './cron/check-timezone.ts'
import { parseCron } from './cron/parse.ts'
import type { Deps } from './deps.ts'
import { getSchedule } from './read.ts'
import { type CheckedTarget, checkTarget } from './targets/registry.ts'
import { targetColumns } from './targets/target-columns.ts'

type Changes = Prisma.ScheduleUncheckedUpdateInput

/** Reason of a schedule that a request has disabled. */
const PAUSED = 'paused'
/** Attempts to launch due runs before a change. After them the change is made anyway. */
const MAX_LAUNCHES = 3

/**
 * Changes a schedule. The new times apply at once; runs that were due before are launched first. Throws `not_found`,
 * `invalid` as for a new schedule and for header values that cannot be kept, and `conflict` for a taken name and for
 * damaged header values.
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
  const change = (launches: number) =>
    deps.db
      .$transaction(async (tx) => {
        const row = await lockSchedule(tx, actor, id)
        if (target?.sessionId != null) await lockTargetedSession(tx, actor, target.sessionId)
        const now = await readTime(tx)
        if (isClockChange(row, input) && mayHaveDueRun(row, now, launches)) return 'due'
        await tx.schedule.update({
          where: { id },
          data: changesOf(deps, row, input, target, now),
          select: { id: true },
        })
        await audit(tx, actor, { action: 'schedule.update', target: id, details: givenFields(input) })
        return 'changed'
      })
      .catch((error) => {
        throw isTaken(error) ? nameTaken() : error
      })
  for (let launches = 0; (await change(launches)) === 'due'; launches++) await launchFirst(deps, actor, id)
  await syncClock(deps, id)
  return getSchedule(deps, actor, id)
}

/** Recognizes the violation of a unique index. A change can violate only the index of names. */
const isTaken = (error: unknown): boolean => (error as { code?: unknown }).code === 'P2002'

/** Returns the database's time, also after a transaction has waited for locks. */
async function readTime(tx: Prisma.TransactionClient): Promise<Date> {
  const [row] = await tx.$queryRaw<{ now: Date }[]>`SELECT clock_timestamp() AS now`
  return row?.now ?? new Date()
}

/**
 * Whether a run may be due that has not been launched yet, after `launches` attempts. While Temporal has not been told of
 * a schedule, nobody knows its times; one attempt tells it.
 */
const mayHaveDueRun = (row: ScheduleRow, now: Date, launches: number): boolean => {
  if (!row.enabled) return false
  if (row.clockDueAt !== null) return launches === 0
  return launches < MAX_LAUNCHES && row.nextTimes.some((time) => time > row.launchedUntil && time <= now)
}

async function launchFirst(deps: Deps, { organizationId }: Actor, scheduleId: ScheduleId): Promise<void> {
  await syncClock(deps, scheduleId)
  await launchDue(deps, { organizationId, scheduleId }).catch((error: Error) => {
    warnRarely(deps.log, { scheduleId, err: error.message }, 'a run was not launched before its schedule was changed')
  })
}

const changesOf = (
  deps: Deps,
  row: ScheduleRow,
  input: UpdateScheduleRequest,
  target: CheckedTarget | undefined,
  now: Date,
): Changes => ({
  ...(isClockChange(row, input) && {
    ...clockChange(row, now),
    launchedUntil: now,
    nextTimes: [],
    nextTimesSince: null,
  }),
  ...(isSwitched(row, input) && { enabled: !row.enabled, disabledReason: row.enabled ? PAUSED : null }),
  name: input.name ?? undefined,
  description: input.description ?? undefined,
  cronExpression: input.cron_expression ?? undefined,
  timezone: input.timezone ?? undefined,
  catchUpMissed: input.catch_up_missed ?? undefined,
  maxCatchUp: input.max_catch_up === 0 ? null : (input.max_catch_up ?? undefined),
  maxConcurrent: input.max_concurrent === 0 ? null : (input.max_concurrent ?? undefined),
  ...(input.retry_policy != null && { retryPolicy: policyColumn(input.retry_policy) }),
  // A new expression may match repeatedly.
  ...(isMoved(row, input) && { isOneOff: false }),
  ...(target !== undefined && { ...clockChange(row, now), ...targetChanges(deps, row, target) }),
  updatedAt: now,
})

/** Makes an update of Temporal due, also for a new target, whose session Temporal shows. */
const clockChange = (row: ScheduleRow, now: Date): Changes => ({ revision: row.revision + 1, clockDueAt: now })

/** A user who changes the target of an agent's schedule takes it over: the agent no longer lists it. */
const targetChanges = (deps: Deps, row: ScheduleRow, target: CheckedTarget): Changes => ({
  ...targetColumns(deps, row.id, target, row),
  toolName: null,
})

const isMoved = (row: ScheduleRow, input: UpdateScheduleRequest): boolean =>
  (input.cron_expression ?? row.cronExpression) !== row.cronExpression ||
  (input.timezone ?? row.timezone) !== row.timezone

const isClockChange = (row: ScheduleRow, input: UpdateScheduleRequest): boolean =>
  isMoved(row, input) || isSwitched(row, input)

const isSwitched = (row: ScheduleRow, { enabled }: UpdateScheduleRequest): boolean =>
  enabled != null && enabled !== row.enabled
