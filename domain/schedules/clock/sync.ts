import { atOnce } from '../../../lib/at-once.ts'
import { sleep } from '../../../lib/sleep.ts'
import { warnRarely } from '../../../lib/warn-rarely.ts'
import { Prisma } from '../../../prisma/generated/client.ts'
import { readCron } from '../cron/read.ts'
import type { Deps } from '../deps.ts'
import type { NextTimes } from './clock.ts'
import { launchDue } from './launch.ts'

/** Schedule that this process has leased until `leasedUntil`, to tell Temporal of it. */
type Leased = {
  id: string
  organizationId: string
  sessionId: string | null
  cronExpression: string
  timezone: string
  enabled: boolean
  disabledReason: string | null
  isDeleted: boolean
  revision: number
  launchedUntil: Date
  isDue: boolean
  leasedUntil: Date
}

/** Maximum time of one update of Temporal and one query. */
const LEASE_SECS = 20
const MAX_ROUNDS = 3
/** Time that a request waits for another process's update of the same schedule, which may have lost Temporal. */
const WAIT_MS = 1000
const POLL_MS = 50

const LEASED = Prisma.sql`
  id, organization_id AS "organizationId", session_id AS "sessionId", cron_expression AS "cronExpression", timezone,
  enabled, disabled_reason AS "disabledReason", deleted_at IS NOT NULL AS "isDeleted", revision,
  launched_until AS "launchedUntil", clock_due_at IS NOT NULL AS "isDue", clock_leased_until AS "leasedUntil"`

/**
 * Updates the clock of a schedule from the record, if that is due. Waits up to WAIT_MS for another process that is
 * updating it. Never rejects: the sweeper repeats failures.
 */
export async function syncClock(deps: Deps, scheduleId: string): Promise<void> {
  try {
    const until = performance.now() + WAIT_MS
    while (!(await syncOnce(deps, scheduleId)) && (await isDue(deps, scheduleId)) && performance.now() < until) {
      await sleep(POLL_MS)
    }
  } catch (error) {
    warnFailed(deps, scheduleId, error)
  }
}

const isDue = async ({ db }: Deps, id: string) =>
  (await db.schedule.count({ where: { id, clockDueAt: { not: null } } })) > 0

const warnFailed = ({ log }: Deps, scheduleId: string, error: unknown) =>
  warnRarely(log, { scheduleId, err: (error as Error).message }, 'Temporal does not know of a schedule yet; retrying')

/** Resolves with false if there is nothing to do, or another process is updating the clock. */
async function syncOnce(deps: Deps, scheduleId: string): Promise<boolean> {
  let row = await lease(deps, scheduleId)
  if (row === undefined) return false
  try {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const next = await updateClock(deps, row)
      const stored: Leased | undefined = await store(deps, row, next)
      // Another process has taken over.
      if (stored === undefined || !stored.isDue) return true
      row = stored
    }
  } catch (error) {
    warnFailed(deps, scheduleId, error)
  }
  await release(deps, row)
  return true
}

async function lease({ db }: Deps, scheduleId: string): Promise<Leased | undefined> {
  const [row] = await db.$queryRaw<Leased[]>`
    UPDATE schedules SET clock_leased_until = now() + make_interval(secs => ${LEASE_SECS})
    WHERE id = ${scheduleId}::uuid AND clock_due_at IS NOT NULL
      AND (clock_leased_until IS NULL OR clock_leased_until < now())
    RETURNING ${LEASED}`
  return row
}

/**
 * Updates Temporal and returns its next times. Launches runs that were due before Temporal knew of them. If the record
 * was restored, Temporal may have a later, different revision: then the record's revision is raised and the schedule
 * stays due.
 */
async function updateClock(deps: Deps, row: Leased): Promise<NextTimes | undefined> {
  const { clock } = deps
  if (row.isDeleted) {
    await clock.remove(row.id)
    return undefined
  }
  const later = await clock.keep({
    scheduleId: row.id,
    organizationId: row.organizationId,
    sessionId: row.sessionId,
    revision: row.revision,
    fields: readCron(row.cronExpression),
    timezone: row.timezone,
    pausedBecause: row.enabled ? null : (row.disabledReason ?? 'Disabled.'),
  })
  if (later !== undefined) {
    await deps.db.schedule.updateMany({ where: { id: row.id, revision: row.revision }, data: { revision: later + 1 } })
    return undefined
  }
  if (!row.enabled) return undefined
  const next = await clock.nextTimes(row.id)
  if (next === undefined) throw new Error('Temporal has lost the schedule again, or somebody has paused it there')
  await launchMissed(deps, row, next)
  return next
}

/** Launches runs that were due before Temporal knew of them, which it does not start. */
async function launchMissed(deps: Deps, row: Leased, { since, times, changedAt }: NextTimes): Promise<void> {
  const { id, organizationId, launchedUntil, revision } = row
  const now = new Date()
  const until = changedAt > now ? changedAt : now
  const isMissed =
    times.some((time) => time > launchedUntil && time <= until) ||
    (launchedUntil < since && (await deps.clock.timesBetween(id, launchedUntil, since, 1)).length > 0)
  if (!isMissed) return
  await launchDue(deps, { organizationId, scheduleId: id }, { scheduledAt: until, clockRevision: revision })
}

/**
 * Stores Temporal's answer and ends the lease. If the schedule has changed meanwhile, extends the lease. Returns
 * undefined if this process has lost it.
 */
async function store(
  { db }: Deps,
  { id, revision, leasedUntil }: Leased,
  next?: NextTimes,
): Promise<Leased | undefined> {
  const [row] = await db.$queryRaw<Leased[]>`
    UPDATE schedules SET
      next_times = CASE WHEN revision = ${revision} THEN ${next?.times ?? []}::timestamptz[] ELSE next_times END,
      next_times_since = CASE WHEN revision = ${revision} THEN ${next?.since ?? null}::timestamptz ELSE next_times_since END,
      clock_due_at = CASE WHEN revision = ${revision} THEN NULL ELSE clock_due_at END,
      clock_leased_until = CASE WHEN revision <> ${revision} THEN now() + make_interval(secs => ${LEASE_SECS}) END
    WHERE id = ${id}::uuid AND clock_leased_until = ${leasedUntil}::timestamptz
    RETURNING ${LEASED}`
  return row
}

/** Ends the lease, and queues the schedule behind other due ones. */
async function release({ db }: Deps, { id, leasedUntil }: Leased): Promise<void> {
  await db.$executeRaw`
    UPDATE schedules SET clock_leased_until = NULL, clock_due_at = now()
    WHERE id = ${id}::uuid AND clock_leased_until = ${leasedUntil}::timestamptz`
}

const GRACE_SECS = 2
const SWEEP_LIMIT = 50
const SWEEP_AT_ONCE = 5

/**
 * Tells Temporal of schedules that their own requests could not report. Returns how many. Meant to be called
 * periodically.
 */
export async function syncSchedules(deps: Deps): Promise<number> {
  const due = await deps.db.$queryRaw<{ id: string }[]>`
    SELECT id FROM schedules
    WHERE clock_due_at < now() - make_interval(secs => ${GRACE_SECS})
      AND (clock_leased_until IS NULL OR clock_leased_until < now())
    ORDER BY clock_due_at LIMIT ${SWEEP_LIMIT}`
  await atOnce(due, SWEEP_AT_ONCE, ({ id }) => syncOnce(deps, id))
  return due.length
}

const LATE_SECS = 60
const REPEAT_AFTER_MS = 300_000

/**
 * Makes schedules due whose runs have not been launched in time, or whose known times have all passed: Temporal may have
 * lost them, or an operator may have changed them there. Returns how many. Meant to be called periodically; `seen` keeps
 * the time at which each was found, so that a schedule that is merely late is not reported to Temporal every time.
 */
export async function findLateSchedules(deps: Deps, seen: Map<string, number>): Promise<number> {
  const now = Date.now()
  for (const [id, at] of seen) if (now - at > REPEAT_AFTER_MS) seen.delete(id)
  const late = await deps.db.$queryRaw<{ id: string }[]>`
    WITH late AS (
      SELECT id FROM schedules, (SELECT now() - make_interval(secs => ${LATE_SECS}) AS by) AS due
      WHERE enabled AND deleted_at IS NULL AND clock_due_at IS NULL AND next_times[1] < due.by
        AND (
          next_times[cardinality(next_times)] < due.by
          OR EXISTS (SELECT FROM unnest(next_times) AS time WHERE time > launched_until AND time < due.by)
        )
        AND id <> ALL (${[...seen.keys()]}::uuid[])
      ORDER BY next_times[1] LIMIT ${SWEEP_LIMIT}
      FOR UPDATE OF schedules SKIP LOCKED
    )
    UPDATE schedules SET clock_due_at = now() FROM late WHERE schedules.id = late.id RETURNING schedules.id`
  for (const { id } of late) seen.set(id, now)
  return late.length
}
