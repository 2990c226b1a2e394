import type { CreateScheduleRequest, Schedule } from '../../contract/schedules.ts'
import { Prisma, type Schedule as ScheduleRow } from '../../prisma/generated/client.ts'
import type { Actor } from '../actor.ts'
import { createOnce } from '../create-once.ts'
import type { Deps } from '../deps.ts'
import type { CreationAttempt } from '../idempotency-keys.ts'
import { asUuid } from '../ids.ts'
import { checkTimezone } from './cron/check-timezone.ts'
import { parseCron } from './cron/parse.ts'
import { insertSchedule, type NewSchedule } from './insert.ts'
import { getSchedule } from './read.ts'
import { syncClock } from './sync.ts'
import { targetColumns } from './target-columns.ts'
import { checkTarget } from './targets/registry.ts'

const DEFAULT_TIMEZONE = 'UTC'
const CREATED_DISABLED = 'created disabled'

/**
 * Creates a schedule. Throws `invalid` for an expression, a time zone or a target that cannot work, and `conflict` for a
 * taken name and beyond the quota.
 */
export async function createSchedule(
  deps: Deps,
  actor: Actor,
  input: CreateScheduleRequest,
  attempt: CreationAttempt,
): Promise<Schedule> {
  const { organizationId } = actor
  const { id } = await createOnce<Pick<ScheduleRow, 'id'>>(attempt, {
    find: (uuid) => deps.db.schedule.findFirst({ where: { id: uuid, organizationId }, select: { id: true } }),
    insert: async (uuid) => {
      const row = await newSchedule(deps, actor, uuid, input)
      return deps.db.$transaction((tx) => insertSchedule(deps, tx, row))
    },
  })
  await syncClock(deps, id)
  return getSchedule(deps, actor, asUuid(id))
}

/** Checks a request and returns the row that it asks for. */
async function newSchedule(deps: Deps, actor: Actor, id: string, input: CreateScheduleRequest): Promise<NewSchedule> {
  parseCron(input.cron_expression)
  const timezone = input.timezone ?? DEFAULT_TIMEZONE
  checkTimezone(timezone)
  const enabled = input.enabled ?? true
  return {
    id,
    organizationId: actor.organizationId,
    name: input.name,
    description: input.description ?? null,
    cronExpression: input.cron_expression,
    timezone,
    enabled,
    disabledReason: enabled ? null : CREATED_DISABLED,
    catchUpMissed: input.catch_up_missed ?? false,
    maxCatchUp: input.max_catch_up ?? null,
    maxConcurrent: input.max_concurrent ?? null,
    retryPolicy: input.retry_policy ?? Prisma.DbNull,
    ...targetColumns(deps, id, await checkTarget(deps, actor, input.target)),
  }
}
