import { CronExpressionParser } from 'cron-parser'
import { checkTimezone } from '../../../domain/schedules/cron/check-timezone.ts'
import type { CronFields } from '../../../domain/schedules/cron/fields.ts'
import { parseCron } from '../../../domain/schedules/cron/parse.ts'
import { readCron } from '../../../domain/schedules/cron/read.ts'

const upTo = (last: number, first = 0) => Array.from({ length: last - first + 1 }, (_, index) => first + index)
const HOURLY: CronFields = {
  seconds: [0],
  minutes: [0],
  hours: null,
  daysOfMonth: null,
  months: null,
  daysOfWeek: null,
  years: null,
}

describe('a cron expression', () => {
  it.each<[string, Partial<CronFields>]>([
    ['* * * * *', { minutes: upTo(59) }],
    ['  0  * *\t* * ', {}],
    ['*/20 * * * *', { minutes: [0, 20, 40] }],
    ['5/20 * * * *', { minutes: [5, 25, 45] }],
    ['0-30/10,30-59/5 * * * *', { minutes: [0, 10, 20, 30, 35, 40, 45, 50, 55] }],
    ['7,007,5-7 * * * *', { minutes: [5, 6, 7] }],
    ['0 */1 * * *', { hours: null }],
    ['0 0-23 * * *', { hours: null }],
    ['0 */2 * * *', { hours: upTo(11).map((hour) => 2 * hour) }],
    ['0 0 */2 * *', { hours: [0], daysOfMonth: upTo(15).map((day) => 2 * day + 1) }],
    ['0 0 ? * ?', { hours: [0] }],
    ['0 0 */1 * MON', { hours: [0], daysOfMonth: upTo(31, 1), daysOfWeek: [1] }],
    ['0 0 13 * fri', { hours: [0], daysOfMonth: [13], daysOfWeek: [5] }],
    ['0 0 * JAN,jul-SEP/2 *', { hours: [0], months: [1, 7, 9] }],
    ['0 0 * * 7', { hours: [0], daysOfWeek: [0] }],
    ['0 0 * * 5-7', { hours: [0], daysOfWeek: [0, 5, 6] }],
    ['0 0 * * FRI-SUN', { hours: [0], daysOfWeek: [0, 5, 6] }],
    ['0 0 * * 0-7', { hours: [0], daysOfWeek: upTo(6) }],
    ['*/10 0 0 * * *', { seconds: [0, 10, 20, 30, 40, 50], hours: [0] }],
    ['30 0 * * * *', { seconds: [30] }],
    ['0 0 0 1 1 * 2098-2099', { hours: [0], daysOfMonth: [1], months: [1], years: [2098, 2099] }],
    ['0 0 0 1 1 * */10', { hours: [0], daysOfMonth: [1], months: [1], years: upTo(12).map((n) => 1970 + 10 * n) }],
    ['0 0 0 29 2 * 2096', { hours: [0], daysOfMonth: [29], months: [2], years: [2096] }],
    ['0 0 29 2 *', { hours: [0], daysOfMonth: [29], months: [2] }],
    ['0 0 30 2 MON', { hours: [0], daysOfMonth: [30], months: [2], daysOfWeek: [1] }],
    ['0 0 31 2,3 *', { hours: [0], daysOfMonth: [31], months: [2, 3] }],
    ['0,50 0,59 12 * * *', { seconds: [0, 50], minutes: [0, 59], hours: [12] }],
    ['5,55 */2 * * * *', { seconds: [5, 55], minutes: upTo(29).map((n) => 2 * n) }],
  ])('is parsed: %s', (expression, expected) => {
    expect(parseCron(expression)).toEqual({ ...HOURLY, ...expected })
  })

  it.each([
    ['', /must have 5 fields.*, not 1$/],
    ['* * * *', /must have 5 fields/],
    ['* * * * * * * *', /, not 8$/],
    ['@daily', /must have 5 fields/],
    ['61 * * * *', /minute of 0 to 59, not "61"/],
    ['* 24 * * *', /hour of .*, not "24"/],
    ['* * 0 * *', /day of month of .*, not "0"/],
    ['* * 32 * *', /day of month of .*, not "32"/],
    ['* * * 13 *', /month of 1 to 12 or JAN to DEC, not "13"/],
    ['* * * FOO *', /month of .*, not "FOO"/],
    ['* * * * 8', /day of week of 0 to 7 or SUN to SAT, not "8"/],
    ['* * * * MONDAY', /day of week of .*, not "MONDAY"/],
    ['MON * * * *', /minute of .*, not "MON"/],
    ['* * L * *', /day of month of .*, not "L"/],
    ['* * 15W * *', /day of month/],
    ['* * * * 5#3', /day of week/],
    ['H * * * *', /minute of .*, not "H"/],
    ['? * * * *', /minute of .*, not "\?"/],
    ['* * ?/2 * *', /day of month/],
    ['*/0 * * * *', /minute of .*, not "\*\/0"/],
    ['5-1 * * * *', /minute of .*, not "5-1"/],
    ['* * * * SAT-MON', /day of week of .*, not "SAT-MON"/],
    ['1- * * * *', /minute/],
    ['-1 * * * *', /minute/],
    ['1,,2 * * * *', /minute/],
    ['1.5 * * * *', /minute/],
    ['*5 * * * *', /minute/],
    ['1-2-3 * * * *', /minute/],
    ['1/2/3 * * * *', /minute/],
    ['0 0 0 1 1 * 1969', /year of 1970 to 2099, not "1969"/],
    ['0 0 0 1 1 * 2100', /year of .*, not "2100"/],
    ['0 0 30 2 *', /must match a day in the future/],
    ['0 0 31 4,6,9,11 *', /must match a day in the future/],
    ['0 0 0 29 2 * 2097-2099', /must match a day in the future/],
    ['0 0 0 1 1 * 2000-2020', /must match a day in the future/],
    ['* * * * * *', /must not run more often than every 10 seconds$/],
    ['*/9 * * * * *', /more often/],
    ['0,5 0 0 1 1 *', /more often/],
    ['0,55 * * * * *', /more often/],
    ['5,56 1,2 * * * *', /more often/],
    ['0,55 0,59 * * * *', /more often/],
    ['0,55 0,59 1,2 * * *', /more often/],
    ['0,55 0,59 0,23 * * *', /more often/],
  ])('is refused: %s', (expression, message) => {
    const parse = () => parseCron(expression)
    expect(parse).toThrow(message)
    expect(parse).toThrow(
      expect.objectContaining({ kind: 'invalid', message: expect.stringMatching(/^cron_expression: /) }),
    )
  })

  it.each([
    `${'*/1,'.repeat(250)}*/1 * * * *`,
    `0 0 0 1 1 * ${'*/1,'.repeat(250)}*`,
    `${'0,'.repeat(500)}0 0 * * *`,
    `* * ${'1-31,'.repeat(190)}1 2 *`,
    'a'.repeat(1024),
    `${'-'.repeat(1000)} * * * *`,
    `${' '.repeat(1014)}* * * * *`,
    `0 0 0 30 2 * ${'*,'.repeat(500)}*`,
  ])('is soon done with, whatever it is', (expression) => {
    const startedAt = performance.now()
    for (let runs = 0; runs < 10; runs++) {
      try {
        parseCron(expression)
      } catch {}
    }
    expect(performance.now() - startedAt).toBeLessThan(1000)
  })

  it('is read when it comes no more', () => {
    expect(readCron('0 0 0 1 1 * 2020')).toMatchObject({ years: [2020] })
  })

  it.each(['*/7 3-9/2 1,15 */3 1-5', '0 5/6 10-20/5 FEB-NOV/4 TUE', '10 */15 0 */9 6 SAT', '1,2,40-50/3 2 31 * 7'])(
    'has the fields that a library finds: %s',
    (expression) => {
      const theirs = CronExpressionParser.parse(expression).fields
      const ours = readCron(expression)
      expect([ours.seconds, ours.minutes, ours.hours, ours.daysOfMonth]).toEqual([
        theirs.second.values,
        theirs.minute.values,
        theirs.hour.values,
        theirs.dayOfMonth.values,
      ])
      expect(ours.months ?? upTo(12, 1)).toEqual(theirs.month.values)
      expect(ours.daysOfWeek).toEqual(theirs.dayOfWeek.values)
    },
  )
})

describe('a time zone', () => {
  it.each([
    ...Intl.supportedValuesOf('timeZone'),
    ...['UTC', 'Etc/UTC', 'GMT', 'Asia/Kolkata', 'Asia/Calcutta', 'Europe/Kyiv', 'Europe/Kiev', 'US/Pacific'],
    ...['America/Nuuk', 'America/Argentina/Buenos_Aires', 'EST5EDT', 'Etc/GMT+5', 'Asia/Ho_Chi_Minh', 'Asia/Saigon'],
  ])('is accepted: %s', (name) => {
    checkTimezone(name)
    expect(() => new Intl.DateTimeFormat('en', { timeZone: name })).not.toThrow()
  })

  it.each([
    '',
    'utc',
    'europe/berlin',
    'EUROPE/BERLIN',
    '+01:00',
    'Z',
    'Local',
    'PST',
    'Europe/Atlantis',
    'Factory',
    'a b',
    '../etc/passwd',
  ])('is refused: "%s"', (name) => {
    expect(() => checkTimezone(name)).toThrow(
      expect.objectContaining({ kind: 'invalid', message: expect.stringMatching(/^timezone: /) }),
    )
  })
})
