import type { Clock } from '../../domain/schedules/clock/clock.ts'

const MAX_TIMES = 10

/** Clock with a run each `everyMs` since the epoch, and the calls it received. Does not use Temporal. */
export function createFakeClock(everyMs: number): Clock & { kept: string[]; removed: string[]; asked: number } {
  const timesAfter = (after: Date, count: number) =>
    Array.from({ length: count }, (_, index) => new Date((Math.floor(after.getTime() / everyMs) + 1 + index) * everyMs))
  const clock = {
    kept: [] as string[],
    removed: [] as string[],
    asked: 0,
    keep: async ({ scheduleId }: { scheduleId: string }) => {
      clock.kept.push(scheduleId)
      return undefined
    },
    remove: async (scheduleId: string) => {
      clock.removed.push(scheduleId)
    },
    nextTimes: async () => {
      clock.asked++
      const since = new Date()
      return { since, times: timesAfter(since, MAX_TIMES), changedAt: new Date(0) }
    },
    timesBetween: async (_id: string, after: Date, until: Date, most: number) => {
      clock.asked++
      const count = Math.floor(until.getTime() / everyMs) - Math.floor(after.getTime() / everyMs)
      return timesAfter(after, count).slice(-most)
    },
  }
  return clock
}
