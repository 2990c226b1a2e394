import type { Schedule } from '../../../prisma/generated/client.ts'
import type { LaunchOutcome } from '../../../workflows/messages.ts'
import { newUuid } from '../../kit/ids.ts'
import type { Deps } from '../deps.ts'
import { type KnownTimes, type RecordedRuns, type Runs, recordRuns } from './record-runs.ts'
import { startSoon } from './start-execution.ts'

/** Columns that a launch does not read. They may have a megabyte. */
const UNREAD = { targetInput: true, targetHeaders: true } as const
type Launched = Omit<Schedule, keyof typeof UNREAD>

export type SchedulePlace = { organizationId: string; scheduleId: string }

/** Maximum delay of the latest run that does not count as missed. */
const ON_TIME_MS = 5 * 60_000
/** Missed runs that a launch makes up for: by default, and at most. */
const DEFAULT_CATCH_UP = 100
const MAX_CATCH_UP = 1000
/** Maximum attempts at a launch, while other launches come first. */
const MAX_ATTEMPTS = 5

const NOTHING: LaunchOutcome = { executions: [] }
/** Times of a schedule that Temporal has lost or an operator has paused there: Temporal must be told again. */
const UNKNOWN: KnownTimes = { since: null, times: [] }

/** Knowledge of a caller: `scheduledAt` has come by Temporal's clock, `clockRevision` is Temporal's latest revision. */
type Knowledge = { scheduledAt?: Date; clockRevision?: number }

/**
 * Records and starts a schedule's due runs, and missed ones up to its catch-up limit. Every run is decided on once,
 * however many callers launch it: a launch decides on all runs that came due since the previous launch. Rejects when it
 * needs Temporal and Temporal is away. `clock_stale`: nothing was launched, because Temporal does not know of a change
 * yet; launch again later.
 */
export async function launchDue(
  deps: Deps,
  place: SchedulePlace,
  { scheduledAt, clockRevision }: Knowledge = {},
): Promise<LaunchOutcome | 'clock_stale'> {
  let until: Date | undefined
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const found = await readSchedule(deps, place)
    if (found === undefined) return removeClock(deps, place)
    const { row, now } = found
    if (row.clockDueAt !== null && row.revision !== clockRevision) return 'clock_stale'
    if (!row.enabled || row.deletedAt !== null) return setClockRight(deps, row)
    until ??= scheduledAt !== undefined && scheduledAt > now ? scheduledAt : now
    const recorded = await launchUntil(deps, row, until, now)
    if (recorded !== undefined) return started(deps, row, recorded)
  }
  throw new Error('Other launches of the schedule came first, time and again.')
}

/** Reads a schedule, even a deleted one, and the database's time. */
async function readSchedule(deps: Deps, { organizationId, scheduleId }: SchedulePlace) {
  const [row, [time]] = await Promise.all([
    deps.db.schedule.findFirst({ where: { id: scheduleId, organizationId }, omit: UNREAD }),
    deps.db.$queryRaw<{ now: Date }[]>`SELECT clock_timestamp() AS now`,
  ])
  return row === null || time === undefined ? undefined : { row, now: time.now }
}

/** Deletes the clock of a schedule that no longer exists. */
async function removeClock(deps: Deps, { scheduleId }: SchedulePlace): Promise<LaunchOutcome> {
  await deps.clock.remove(scheduleId)
  return NOTHING
}

/** Makes the sweeper tell Temporal again that a schedule must not run. */
async function setClockRight(deps: Deps, { id, revision }: Launched): Promise<LaunchOutcome> {
  await deps.db.schedule.updateMany({ where: { id, revision, clockDueAt: null }, data: { clockDueAt: new Date() } })
  return NOTHING
}

/** Records the runs due up to a time. Undefined if the schedule has changed or another launch came first. */
async function launchUntil(deps: Deps, row: Launched, until: Date, now: Date): Promise<RecordedRuns | undefined> {
  if (until <= row.launchedUntil) return { started: [] }
  const { due, next } = await readDue(deps, row, until)
  const times = toLaunch(row, due, now)
  const runs: Runs = {
    ids: times.map(newUuid),
    times,
    ofClock: { revision: row.revision, seen: row.launchedUntil, until, next },
  }
  const recorded = await recordRuns(deps, row, runs)
  return recorded === 'stale' || recorded === 'gone' ? undefined : recorded
}

async function started(deps: Deps, row: Launched, { started: executions }: RecordedRuns): Promise<LaunchOutcome> {
  await Promise.all(executions.map((execution) => startSoon(deps, row, execution)))
  return { executions: executions.map(({ id }) => id) }
}

/** Returns the times in (launched_until, until], at least the latest that may be launched, and the following times. */
async function readDue(deps: Deps, row: Launched, until: Date): Promise<{ due: Date[]; next: KnownTimes }> {
  const { launchedUntil, nextTimes, nextTimesSince } = row
  const last = nextTimes.at(-1)
  if (nextTimesSince !== null && nextTimesSince <= launchedUntil && last !== undefined && last > until) {
    const due = nextTimes.filter((time) => time > launchedUntil && time <= until)
    return { due, next: { since: until, times: nextTimes.filter((time) => time > until) } }
  }
  const [due, next] = await Promise.all([
    deps.clock.timesBetween(row.id, launchedUntil, until, Math.max(1, catchUpOf(row))),
    deps.clock.nextTimes(row.id),
  ])
  return { due, next: next ?? UNKNOWN }
}

/**
 * Returns the due times to launch: the latest one if it is at most `ON_TIME_MS` late, and the latest ones up to the
 * catch-up limit.
 */
export function toLaunch(row: Pick<Schedule, 'catchUpMissed' | 'maxCatchUp'>, due: Date[], now: Date): Date[] {
  const latest = due.at(-1)
  const onTime = latest !== undefined && now.getTime() - latest.getTime() <= ON_TIME_MS ? 1 : 0
  const most = Math.max(onTime, catchUpOf(row))
  return most === 0 ? [] : due.slice(-most)
}

const catchUpOf = ({ catchUpMissed, maxCatchUp }: Pick<Schedule, 'catchUpMissed' | 'maxCatchUp'>): number =>
  catchUpMissed ? Math.min(maxCatchUp ?? DEFAULT_CATCH_UP, MAX_CATCH_UP) : 0
