import { invalid } from '../../kit/errors.ts'
import type { CronFields } from './fields.ts'
import { type FieldKind, readField } from './read-field.ts'

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const DAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

const SECOND: FieldKind = { label: 'second', min: 0, max: 59 }
const MINUTE: FieldKind = { label: 'minute', min: 0, max: 59 }
const HOUR: FieldKind = { label: 'hour', min: 0, max: 23 }
const DAY_OF_MONTH: FieldKind = { label: 'day of month', min: 1, max: 31 }
const MONTH: FieldKind = { label: 'month', min: 1, max: 12, names: { first: 1, list: MONTHS } }
const DAY_OF_WEEK: FieldKind = { label: 'day of week', min: 0, max: 7, names: { first: 0, list: DAYS } }
const YEAR: FieldKind = { label: 'year', min: 1970, max: 2099 }

/**
 * Reads a cron expression, also if it never matches again. Throws `invalid` if it is malformed. Libraries lack the year
 * field, or refuse lists that name a number twice.
 */
export function readCron(expression: string): CronFields {
  const texts = expression.trim().split(/\s+/)
  if (texts.length < 5 || texts.length > 7 || texts[0] === '') throw wrongLength(texts.length)
  const all = texts.length === 5 ? ['0', ...texts] : texts
  const [second = '*', minute = '*', hour = '*', dayOfMonth = '*', month = '*', dayOfWeek = '*', year = '*'] = all
  const hours = orNull(hour, HOUR)
  return {
    seconds: readField(second, SECOND),
    minutes: readField(minute, MINUTE),
    hours: hours?.length === 24 ? null : hours,
    daysOfMonth: orNull(dayOfMonth === '?' ? '*' : dayOfMonth, DAY_OF_MONTH),
    months: orNull(month, MONTH),
    daysOfWeek:
      orNull(dayOfWeek === '?' ? '*' : dayOfWeek, DAY_OF_WEEK)
        ?.map((day) => day % 7)
        .filter((day, index, days) => days.indexOf(day) === index)
        .sort((a, b) => a - b) ?? null,
    years: orNull(year, YEAR),
  }
}

const orNull = (text: string, kind: FieldKind): number[] | null => (text === '*' ? null : readField(text, kind))

const wrongLength = (count: number) =>
  invalid(
    'cron_expression: must have 5 fields (minute hour day-of-month month day-of-week), 6 (the second first) or 7 ' +
      `(the second first, the year last), not ${count}`,
  )
