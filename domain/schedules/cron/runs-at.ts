import type { CronFields } from './fields.ts'
import { matches } from './matches.ts'
import { offsetAt, wallClockAt } from './wall-clock.ts'

/**
 * Whether a schedule runs at an instant. A skipped time runs later by the length of the gap, a repeated time at its
 * first instant. An hourly schedule runs once in each real hour.
 */
export function runsAt(fields: CronFields, timezone: string, instant: Date): boolean {
  const { wall, repeated, skipped } = wallClockAt(timezone, instant)
  const isEachHour = fields.hours === null
  if (matches(fields, wall) && (isEachHour || !repeated)) return true
  return !isEachHour && skipped !== null && matches(fields, skipped)
}

const DAY_MS = 86_400_000
/** Single instants are intervals since 1970 in Temporal, which match again as many years later. */
const FAR_MS = 25 * 365 * DAY_MS

/**
 * Whether Temporal takes an instant for a run by mistake, such as in the second of two hours of the same name. Checked
 * only near clock changes and far ahead: otherwise Temporal decides, whose time zone data may differ from Node's.
 */
export function isMistaken(fields: CronFields, timezone: string, instant: Date): boolean {
  const at = instant.getTime()
  const isNearChange = offsetAt(timezone, at - DAY_MS) !== offsetAt(timezone, at + DAY_MS)
  return (isNearChange || at > Date.now() + FAR_MS) && !runsAt(fields, timezone, instant)
}
