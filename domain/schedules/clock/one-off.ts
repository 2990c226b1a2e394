import { z } from 'zod'
import { invalid } from '../../kit/errors.ts'
import { offsetAt } from '../cron/wall-clock.ts'

const DAY_MS = 24 * 3_600_000
const MAX_YEARS = 10

const Time = z.iso.datetime({ offset: true, local: true })

/**
 * Parses the time of a one-off, to the second. A time without an offset is in the zone: a repeated time means its first
 * instant, and a skipped time is put later by the length of the gap. Throws `invalid` for a time that is malformed, not
 * in the future, or more than ten years ahead.
 */
export function parseTime(text: string, timezone: string, now: Date): Date {
  if (!Time.safeParse(text).success)
    throw invalid('at: must be an ISO 8601 time such as 2030-01-31T09:00:00+01:00, or without an offset in timezone')
  const hasOffset = /(Z|[+-]\d\d:\d\d)$/.test(text)
  const time = hasOffset ? Date.parse(text) : instantOf(Date.parse(`${text}Z`), timezone)
  const latest = new Date(now).setUTCFullYear(now.getUTCFullYear() + MAX_YEARS)
  const second = new Date(Math.floor(time / 1000) * 1000)
  if (second <= now) throw invalid(`at: must be in the future; it is ${now.toISOString()} now`)
  if (second.getTime() > latest) throw invalid(`at: must be at most ${MAX_YEARS} years ahead`)
  return second
}

/** Returns the seven-field cron expression, in UTC, that matches only this second. */
export const cronOfTime = (time: Date): string =>
  [
    time.getUTCSeconds(),
    time.getUTCMinutes(),
    time.getUTCHours(),
    time.getUTCDate(),
    time.getUTCMonth() + 1,
    '*',
    time.getUTCFullYear(),
  ].join(' ')

/** Returns the time of an expression made by `cronOfTime`. */
export function timeOfCron(expression: string): Date {
  const [second, minute, hour, day, month = 1, , year = 0] = expression.split(' ').map(Number)
  return new Date(Date.UTC(year, month - 1, day, hour, minute, second))
}

/** Returns the instant in ms at which clocks of the zone show `local`, given in ms as if it were UTC. */
function instantOf(local: number, timezone: string): number {
  const before = local - offsetAt(timezone, local - DAY_MS)
  const after = local - offsetAt(timezone, local + DAY_MS)
  const shows = (instant: number) => instant + offsetAt(timezone, instant) === local
  return !shows(before) && shows(after) ? after : before
}
