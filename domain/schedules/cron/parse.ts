import { invalid } from '../../kit/errors.ts'
import type { CronFields } from './fields.ts'
import { matchesDay } from './matches.ts'
import { readCron } from './read.ts'

const MIN_PAUSE_SECS = 10
const DAY_MS = 86_400_000
/** Years to search when all match. They have every date, also 29 February. */
const YEARS_AHEAD = 8

/**
 * Parses a cron expression of five, six (the second first) or seven fields (the second first, the year last). Throws
 * `invalid` if it is malformed, never matches, or matches more often than every 10 s.
 */
export function parseCron(expression: string): CronFields {
  const fields = readCron(expression)
  if (shortestPause(fields) < MIN_PAUSE_SECS) {
    throw invalid(`cron_expression: must not run more often than every ${MIN_PAUSE_SECS} seconds`)
  }
  if (!comes(fields, new Date())) throw invalid('cron_expression: must match a day in the future, or it never runs')
  return fields
}

/**
 * Returns the shortest time in seconds between two runs, within a minute or across the end of one. Hours that are
 * consecutive only when clocks are put forward do not count.
 */
function shortestPause({ seconds, minutes, hours }: CronFields): number {
  const pauses = seconds.slice(1).map((second, index) => second - (seconds[index] ?? 0))
  const follow = minutes.some((minute) => minute < 59 && minutes.includes(minute + 1))
  const hoursFollow = hours === null || hours.some((hour) => hours.includes((hour + 1) % 24))
  if (follow || (minutes.includes(59) && minutes.includes(0) && hoursFollow)) {
    pauses.push(60 - (seconds.at(-1) ?? 0) + (seconds[0] ?? 0))
  }
  return Math.min(60, ...pauses)
}

/** Whether any day matches that is not over in all time zones. */
function comes(fields: CronFields, now: Date): boolean {
  const today = now.getTime() - DAY_MS
  const thisYear = new Date(today).getUTCFullYear()
  const years = fields.years ?? Array.from({ length: YEARS_AHEAD + 1 }, (_, index) => thisYear + index)
  const months = fields.months ?? Array.from({ length: 12 }, (_, index) => index + 1)
  return years
    .filter((year) => year >= thisYear)
    .some((year) => months.some((month) => comesInMonth(fields, year, month, today)))
}

function comesInMonth(fields: CronFields, year: number, month: number, after: number): boolean {
  const end = Date.UTC(year, month, 1)
  for (let day = Date.UTC(year, month - 1, 1); day < end; day += DAY_MS) {
    if (day + DAY_MS > after && matchesDay(fields, new Date(day))) return true
  }
  return false
}
