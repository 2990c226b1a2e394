import { clockChangesOf } from './clock-changes.ts'
import type { CronFields } from './fields.ts'
import { numbersOf, type Range, rangesOf } from './ranges.ts'
import { findRepeated } from './repeated.ts'
import { findSkipped } from './skipped.ts'

/** A structured calendar of Temporal. All fields must match; an empty `year` matches every year. */
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
const SKIPPED = 'day on which clocks are put forward'

/** First year that Temporal accepts. Earlier years are over anyway. */
const FIRST_YEAR = 2000
const DAYS_OF_MONTH = { start: 1, end: 31, step: 1 }
const DAYS_OF_WEEK = { start: 0, end: 6, step: 1 }

/** Alternative calendars, and further instants. */
export type Timetable = { calendars: Calendar[]; instants: Date[] }

/**
 * Translates a cron expression for Temporal, whose calendars are wrong where clocks change: they leave out times that
 * do not exist that day, and match others in the second of two hours of the same name. The timetable adds missing times
 * for 20 years; `isMistaken` recognizes wrong ones.
 */
export function timetableOf(fields: CronFields, timezone: string, now: Date): Timetable {
  const changes = clockChangesOf(timezone, now)
  const calendars = expressionCalendars(fields)
  const second = rangesOf(fields.seconds)
  const skipped = findSkipped(fields, changes).map(({ month, day, hours, minutes, years }) => ({
    comment: SKIPPED,
    second,
    minute: rangesOf(minutes),
    hour: rangesOf(hours),
    dayOfMonth: rangesOf([day]),
    month: rangesOf([month]),
    dayOfWeek: [DAYS_OF_WEEK],
    year: rangesOf(years),
  }))
  return { calendars: [...calendars, ...skipped], instants: findRepeated(fields, changes, now) }
}

function expressionCalendars(fields: CronFields): Calendar[] {
  const base = {
    second: rangesOf(fields.seconds),
    minute: rangesOf(fields.minutes),
    hour: fields.hours === null ? [{ start: 0, end: 23, step: 1 }] : rangesOf(fields.hours),
    month: fields.months === null ? [{ start: 1, end: 12, step: 1 }] : rangesOf(fields.months),
    year: fields.years === null ? [] : rangesOf([...new Set(fields.years.map((year) => Math.max(year, FIRST_YEAR)))]),
  }
  const dayOfMonth = fields.daysOfMonth === null ? [DAYS_OF_MONTH] : rangesOf(fields.daysOfMonth)
  const dayOfWeek = fields.daysOfWeek === null ? [DAYS_OF_WEEK] : rangesOf(fields.daysOfWeek)
  if (fields.daysOfMonth === null || fields.daysOfWeek === null) {
    return [{ comment: EXPRESSION, ...base, dayOfMonth, dayOfWeek }]
  }
  return [
    { comment: BY_DAY_OF_MONTH, ...base, dayOfMonth, dayOfWeek: [DAYS_OF_WEEK] },
    { comment: BY_DAY_OF_WEEK, ...base, dayOfMonth: [DAYS_OF_MONTH], dayOfWeek },
  ]
}

/** Reads an expression back from its calendars. Undefined if an operator has changed them. */
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

/** Whether timetables are equal, including the order. */
export const areSame = (one: Timetable, other: Timetable): boolean => textOf(one) === textOf(other)

const textOf = ({ calendars, instants }: Timetable): string =>
  JSON.stringify([calendars.map((calendar) => RANGES.map((name) => numbersOf(calendar[name]))), instants])
