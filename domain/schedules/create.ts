import type { CreateScheduleRequest, RetryPolicy, Schedule } from '../../contract/schedules.ts'
import { Prisma, type Schedule as ScheduleRow } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import { audit } from '../kit/audit/entry.ts'
import { createOnce } from '../kit/create-once.ts'
import { conflict, quotaExceeded } from '../kit/errors.ts'
import type { CreationAttempt } from '../kit/idempotency-keys.ts'
import { asUuid } from '../kit/ids.ts'
import { lockOrganization } from '../kit/lock-organization.ts'
import { lockTargetedSession } from './clock/lock.ts'
import { syncClock } from './clock/sync.ts'
import { checkTimezone } from './cron/check-timezone.ts'
import { parseCron } from './cron/parse.ts'
import type { Deps } from './deps.ts'
import { getSchedule } from './read.ts'
import { checkTarget } from './targets/registry.ts'
import { targetColumns } from './targets/target-columns.ts'

const DEFAULT_TIMEZONE = 'UTC'
const CREATED_DISABLED = 'created disabled'

/** Row of a new schedule, whose cron expression, time zone and target have been checked. */
export type NewSchedule = Prisma.ScheduleCreateManyInput &
  Pick<ScheduleRow, 'id' | 'organizationId' | 'name' | 'sessionId'>

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
      return deps.db.$transaction(async (tx) => {
        const inserted = await insertSchedule(tx, deps, row)
        if (inserted !== undefined) await audit(tx, actor, { action: 'schedule.create', target: uuid })
        return inserted
      })
    },
  })
  await syncClock(deps, id)
  return getSchedule(deps, actor, asUuid(id))
}

/** Returns the column of a retry policy. An empty policy means no policy. */
export const policyColumn = (policy: RetryPolicy) => (Object.keys(policy).length === 0 ? Prisma.DbNull : policy)

export const nameTaken = () =>
  conflict('name: the organization has a schedule of that name already; choose another name')

/** Checks a request and returns its row. */
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
    maxCatchUp: input.max_catch_up || null,
    maxConcurrent: input.max_concurrent || null,
    retryPolicy: policyColumn(input.retry_policy ?? {}),
    ...targetColumns(deps, id, await checkTarget(deps, actor, input.target)),
  }
}

/**
 * Inserts a schedule; undefined if another run of the request has created it. The caller calls `syncClock` after the
 * commit. Throws `invalid` when the session that it targets is gone, and `conflict` for a taken name and at the quota.
 */
export async function insertSchedule(
  tx: Prisma.TransactionClient,
  { quotas }: Deps,
  row: NewSchedule,
): Promise<ScheduleRow | undefined> {
  const { organizationId, name, sessionId } = row
  if (sessionId !== null) await lockTargetedSession(tx, row, sessionId)
  await lockOrganization(tx, organizationId)
  const { maxCount } = quotas.schedules
  if ((await tx.schedule.count({ where: { organizationId, deletedAt: null } })) >= maxCount) {
    throw quotaExceeded(`The organization has ${maxCount} schedules, which is the limit; delete one first`)
  }
  if ((await tx.schedule.count({ where: { organizationId, name, deletedAt: null } })) > 0) {
    throw nameTaken()
  }
  const [inserted] = await tx.schedule.createManyAndReturn({ data: [row], skipDuplicates: true })
  return inserted
}
