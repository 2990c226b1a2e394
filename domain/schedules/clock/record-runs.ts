import type { Prisma } from '../../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'

/**
 * The next times according to Temporal; see schedules. If `since` is null, Temporal must be told of the schedule again.
 */
export type KnownTimes = { since: Date | null; times: Date[] }

/**
 * Runs to record, with the id and the time of each. `ofClock`: the state of the schedule that the caller decided on,
 * and the following times. Absent for a run that a user starts.
 */
export type Runs = {
  ids: string[]
  times: Date[]
  ofClock?: { revision: number; seen: Date; until: Date; next: KnownTimes }
}

/** Recorded run that is to start. */
export type RecordedRun = { id: string; scheduledAt: Date }
/** Runs to start; the others are skipped. */
export type RecordedRuns = { started: RecordedRun[] }

type ScheduleKey = { id: string; organizationId: string }
type Answer = { outcome: 'launched'; started: string[] } | { outcome: 'stale' | 'gone' }

/**
 * Records runs of a schedule, all or none. `stale`: another launch or a change of the schedule came first. `gone`: it was
 * deleted.
 */
export async function recordRuns(
  deps: Pick<Deps, 'quotas'> & { db: Prisma.TransactionClient },
  place: ScheduleKey,
  runs: Runs,
): Promise<RecordedRuns | 'stale' | 'gone'> {
  const { ids, times, ofClock } = runs
  const [row] = await deps.db.$queryRaw<{ answer: Answer }[]>`
    SELECT launch_executions(
      ${place.organizationId}::uuid, ${place.id}::uuid, ${ids}::uuid[], ${times}::timestamptz[],
      ${deps.quotas.schedules.maxRunning}::integer,
      ${ofClock?.revision ?? null}::integer, ${ofClock?.seen ?? null}::timestamptz, ${ofClock?.until ?? null}::timestamptz,
      ${ofClock?.next.times ?? []}::timestamptz[], ${ofClock?.next.since ?? null}::timestamptz
    ) AS answer`
  if (row === undefined) throw new Error('launch_executions did not answer.')
  const { answer } = row
  if (answer.outcome !== 'launched') return answer.outcome
  const all = ids.map((id, index) => ({ id, scheduledAt: times[index] ?? new Date() }))
  return { started: all.filter(({ id }) => answer.started.includes(id)) }
}
