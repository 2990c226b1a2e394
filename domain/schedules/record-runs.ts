import type { Deps } from '../deps.ts'
import type { NextTimes } from './clock.ts'

/**
 * Runs to record: the id and the time of each. `ofClock`: what the caller saw of the schedule when it decided on what was
 * due, and the times that follow. Absent for a run that a user starts.
 */
export type Runs = {
  ids: string[]
  times: Date[]
  ofClock?: { revision: number; seen: Date; until: Date; next: NextTimes }
}

/** Ids of the executions that are to start; the others are skipped. */
export type RecordedRuns = { started: string[] }

type Place = { id: string; organizationId: string }
type Answer = { outcome: 'launched'; started: string[] } | { outcome: 'stale' | 'gone' }

/**
 * Records runs of a schedule, all or none. `stale`: another launch or a change of the schedule came first. `gone`: it was
 * deleted.
 */
export async function recordRuns(deps: Deps, place: Place, runs: Runs): Promise<RecordedRuns | 'stale' | 'gone'> {
  const { ids, times, ofClock } = runs
  const [row] = await deps.db.$queryRaw<{ answer: Answer }[]>`
    SELECT launch_executions(
      ${place.organizationId}::uuid, ${place.id}::uuid, ${ids}::uuid[], ${times}::timestamptz[],
      ${deps.quotas.schedules.maxRunning}::integer,
      ${ofClock?.revision ?? null}::integer, ${ofClock?.seen ?? null}::timestamptz, ${ofClock?.until ?? null}::timestamptz,
      ${ofClock?.next.times ?? []}::timestamptz[], ${ofClock?.next.since ?? null}::timestamptz
    ) AS answer`
  if (row === undefined) throw new Error('launch_executions did not answer.')
  return row.answer.outcome === 'launched' ? row.answer : row.answer.outcome
}
