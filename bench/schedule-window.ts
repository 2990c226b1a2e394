import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from './statistics.ts'

export const SCHEDULES = 1000
/** Number of creations under way at once. */
export const IN_FLIGHT = 8
/** Minutes in which each schedule is due once. */
const MINUTES = 2
const MINUTE_MS = 60_000
/** Time for the creation of all schedules before the first is due. */
const CREATION_MS = 180_000
/** Time after the last run is due in which late ones may start. */
const LATE_MS = 600_000
const POLL_MS = 1000

/** Second at which each schedule is due: spread over the minute, or the same for all. */
export type Spread = 'spread' | 'at once'

/** Minutes of one hour, in UTC, in which all schedules are due. */
export type Window = { hour: number; minutes: number[]; startsAt: number; endsAt: number }

/** Run of a schedule: when it was due and when it has started, in ms. */
export type Run = { dueAt: number; startedAt: number }

/** Outcome of a window; delays in ms. */
export type Measured = { runs: number; missed: number; twice: number; delayP50: number; delayP99: number }

/** Runs that there are in a window. */
export const EXPECTED = SCHEDULES * MINUTES

export const secondOf = (number: number, spread: Spread): number => (spread === 'spread' ? number % 60 : 0)

/** Returns the next window for which there is time to create the schedules. It lies within one hour. */
export function nextWindow(now = Date.now()): Window {
  const soonest = Math.ceil((now + CREATION_MS) / MINUTE_MS) * MINUTE_MS
  const minute = new Date(soonest).getUTCMinutes()
  const startsAt = minute + MINUTES > 60 ? soonest + (60 - minute) * MINUTE_MS : soonest
  const first = new Date(startsAt)
  return {
    hour: first.getUTCHours(),
    minutes: Array.from({ length: MINUTES }, (_, index) => first.getUTCMinutes() + index),
    startsAt,
    endsAt: startsAt + MINUTES * MINUTE_MS,
  }
}

/** Runs `task` for each schedule, a few at a time. Returns the ms that each took. */
export async function forEachSchedule(task: (number: number) => Promise<unknown>): Promise<number[]> {
  const times: number[] = []
  let next = 0
  const lane = async () => {
    for (let number = next++; number < SCHEDULES; number = next++) {
      const startedAt = performance.now()
      await task(number)
      times.push(performance.now() - startedAt)
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
  return times
}

/** Throws when the schedules were created too late to be measured. */
export function requireInTime({ startsAt }: Window): void {
  if (Date.now() >= startsAt) throw new Error(`the schedules were not created within ${CREATION_MS / 1000} s`)
}

/** Waits until all runs of a window have started, or until it is too late. */
export async function waitForRuns({ endsAt }: Window, countRuns: () => Promise<number>): Promise<void> {
  await sleep(Math.max(0, endsAt - Date.now()))
  while (Date.now() < endsAt + LATE_MS && (await countRuns()) < EXPECTED) await sleep(POLL_MS)
}

/** Sums up the runs of a window, keyed by schedule and due time. */
export function measure(runs: Map<string, Run[]>): Measured {
  const all = [...runs.values()].flat()
  const delays = all.map(({ dueAt, startedAt }) => startedAt - dueAt)
  return {
    runs: all.length,
    missed: EXPECTED - runs.size,
    twice: all.length - runs.size,
    delayP50: percentile(delays, 0.5),
    delayP99: percentile(delays, 0.99),
  }
}
