import type { CronFields } from './fields.ts'
import { matches } from './matches.ts'
import { offsetAt, wallClockAt } from './wall-clock.ts'

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

const DAY_MS = 86_400_000
/** Temporal is told of single instants by intervals since 1970, which end again as many years later. */
const FAR_MS = 25 * 365 * DAY_MS

/**
 * Whether an instant is one that only Temporal takes for a run of a schedule: at the second of two hours of the same
 * name, for one. Elsewhere Temporal's word counts, whose time zones may be of another version than those of Node.
 */
export function isMistaken(fields: CronFields, timezone: string, instant: Date): boolean {
  const at = instant.getTime()
  const isNearChange = offsetAt(timezone, at - DAY_MS) !== offsetAt(timezone, at + DAY_MS)
  return (isNearChange || at > Date.now() + FAR_MS) && !runsAt(fields, timezone, instant)
}
