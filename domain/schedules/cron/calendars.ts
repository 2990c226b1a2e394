import type { CronFields } from './fields.ts'
import { type Gap, gapsOf } from './gaps.ts'
import { matches } from './matches.ts'

/** Numbers from `start` to `end`, of which each `step`th counts. */
export type Range = { start: number; end: number; step: number }

/** A structured calendar of Temporal: a time matches that all fields match. No range of years matches all. */
export type Calendar = {
  comment: string
  second: Range[]
  minute: Range[]
  hour: Range[]
  dayOfMonth: Range[]
  month: Range[]
  dayOfWeek: Range[]
  year: Range[]
}

const EXPRESSION = 'cron expression'
const BY_DAY_OF_MONTH = 'cron expression, by day of month'
const BY_DAY_OF_WEEK = 'cron expression, by day of week'
const SKIPPED = 'left out by daylight saving, an hour later'

const MINUTE_MS = 60_000
/** First year that Temporal accepts. Those before are over anyway. */
const FIRST_YEAR = 2000
const DAYS_OF_MONTH = { start: 1, end: 31, step: 1 }
const DAYS_OF_WEEK = { start: 0, end: 6, step: 1 }

/**
 * Translates a cron expression to calendars of Temporal, either of which matches. Temporal leaves out times that do not
 * exist on the day that clocks are put forward: these are calendars of their own, for 20 years. It takes times that come
 * twice for two: see `runsAt`.
 */
export function calendarsOf(fields: CronFields, timezone: string, now: Date): Calendar[] {
  const base = {
    second: rangesOf(fields.seconds),
    minute: rangesOf(fields.minutes),
    hour: fields.hours === null ? [{ start: 0, end: 23, step: 1 }] : rangesOf(fields.hours),
    month: fields.months === null ? [{ start: 1, end: 12, step: 1 }] : rangesOf(fields.months),
    year: fields.years === null ? [] : rangesOf([...new Set(fields.years.map((year) => Math.max(year, FIRST_YEAR)))]),
  }
  const dayOfMonth = fields.daysOfMonth === null ? [DAYS_OF_MONTH] : rangesOf(fields.daysOfMonth)
  const dayOfWeek = fields.daysOfWeek === null ? [DAYS_OF_WEEK] : rangesOf(fields.daysOfWeek)
  const isEither = fields.daysOfMonth !== null && fields.daysOfWeek !== null
  const expression = isEither
    ? [
        { comment: BY_DAY_OF_MONTH, ...base, dayOfMonth, dayOfWeek: [DAYS_OF_WEEK] },
        { comment: BY_DAY_OF_WEEK, ...base, dayOfMonth: [DAYS_OF_MONTH], dayOfWeek },
      ]
    : [{ comment: EXPRESSION, ...base, dayOfMonth, dayOfWeek }]
  return [...expression, ...skippedCalendars(fields, base.second, gapsOf(timezone, now))]
}

/** Returns calendars for times that clocks leave out, one for the years in which it is the same day. */
function skippedCalendars(fields: CronFields, second: Range[], gaps: Gap[]): Calendar[] {
  if (fields.hours === null) return []
  const days = new Map<string, { at: Date; minutes: number[]; years: number[] }>()
  for (const gap of gaps) {
    for (const [hour, minutes] of shiftedMinutes(fields, gap)) {
      const at = new Date(hour)
      const key = [at.getUTCMonth(), at.getUTCDate(), at.getUTCHours(), ...minutes].join()
      const day = days.get(key) ?? { at, minutes, years: [] }
      day.years.push(at.getUTCFullYear())
      days.set(key, day)
    }
  }
  return [...days.values()].map(({ at, minutes, years }) => ({
    comment: SKIPPED,
    second,
    minute: rangesOf(minutes),
    hour: rangesOf([at.getUTCHours()]),
    dayOfMonth: rangesOf([at.getUTCDate()]),
    month: rangesOf([at.getUTCMonth() + 1]),
    dayOfWeek: [DAYS_OF_WEEK],
    year: rangesOf(years),
  }))
}

/** Returns the minutes, by the start of their hour, at which the times in a gap run that would not run anyway. */
function shiftedMinutes(fields: CronFields, { from, to }: Gap): Map<number, number[]> {
  const hours = new Map<number, number[]>()
  const inSecond = (fields.seconds[0] ?? 0) * 1000
  for (let wall = from; wall < to; wall += MINUTE_MS) {
    const shifted = new Date(wall + to - from)
    if (!matches(fields, new Date(wall + inSecond)) || matches(fields, new Date(shifted.getTime() + inSecond))) continue
    const minute = shifted.getUTCMinutes()
    const hour = shifted.getTime() - minute * MINUTE_MS
    hours.set(hour, [...(hours.get(hour) ?? []), minute])
  }
  return hours
}

/** Reads calendars that were made from an expression back. Undefined when an operator has made others of them. */
export function fieldsOf(calendars: Calendar[]): CronFields | undefined {
  const ofMonth = calendars.find(({ comment }) => comment === EXPRESSION || comment === BY_DAY_OF_MONTH)
  const ofWeek = calendars.find(({ comment }) => comment === EXPRESSION || comment === BY_DAY_OF_WEEK)
  if (ofMonth === undefined || ofWeek === undefined) return undefined
  const isEither = ofMonth !== ofWeek
  const orNull = (numbers: number[], all: number) => (numbers.length === all && !isEither ? null : numbers)
  const hours = numbersOf(ofMonth.hour)
  const months = numbersOf(ofMonth.month)
  const years = numbersOf(ofMonth.year)
  return {
    seconds: numbersOf(ofMonth.second),
    minutes: numbersOf(ofMonth.minute),
    hours: hours.length === 24 ? null : hours,
    daysOfMonth: orNull(numbersOf(ofMonth.dayOfMonth), 31),
    months: months.length === 12 ? null : months,
    daysOfWeek: orNull(numbersOf(ofWeek.dayOfWeek), 7),
    years: years.length === 0 ? null : years,
  }
}

const RANGES = ['second', 'minute', 'hour', 'dayOfMonth', 'month', 'dayOfWeek', 'year'] as const

/** Whether calendars match the same times, in the same order. */
export const areSame = (some: Calendar[], others: Calendar[]): boolean => textOf(some) === textOf(others)

const textOf = (calendars: Calendar[]): string =>
  JSON.stringify(calendars.map((calendar) => RANGES.map((name) => numbersOf(calendar[name]))))

/** Writes numbers, which ascend, as few ranges. */
function rangesOf(numbers: readonly number[]): Range[] {
  const ranges: Range[] = []
  for (const value of numbers) {
    const last = ranges.at(-1)
    if (last !== undefined && last.start === last.end) Object.assign(last, { end: value, step: value - last.start })
    else if (last !== undefined && value - last.end === last.step) last.end = value
    else ranges.push({ start: value, end: value, step: 1 })
  }
  return ranges
}

const numbersOf = (ranges: Range[]): number[] =>
  ranges.flatMap(({ start, end, step }) =>
    Array.from({ length: Math.floor((end - start) / step) + 1 }, (_, index) => start + index * step),
  )
