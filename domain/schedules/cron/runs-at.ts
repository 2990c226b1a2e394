import type { CronFields } from './fields.ts'
import { matches } from './matches.ts'
import { readCron } from './read.ts'
import { wallClockAt } from './wall-clock.ts'

/**
 * Whether a schedule runs at an instant: a time that the clock leaves out runs later by what it was put forward, and one
 * that it shows twice runs at its first. A schedule of every hour runs in each hour that there is, once.
 */
export function runsAt(fields: CronFields, timezone: string, instant: Date): boolean {
  const { wall, repeated, skipped } = wallClockAt(timezone, instant)
  const isEachHour = fields.hours === null
  if (matches(fields, wall) && (isEachHour || !repeated)) return true
  return !isEachHour && skipped !== null && matches(fields, skipped)
}

/**
 * Whether Temporal alone takes an instant for a run of a schedule: at the second of two hours of the same name, for one.
 * Takes the expression as it is stored.
 */
export const isRepeat = (cronExpression: string, timezone: string, instant: Date): boolean =>
  !runsAt(readCron(cronExpression), timezone, instant)
