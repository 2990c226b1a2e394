import { CronExpressionParser } from 'cron-parser'
import { fieldsOf, timetableOf } from '../../../domain/schedules/cron/calendars.ts'
import { readCron } from '../../../domain/schedules/cron/read.ts'
import { isMistaken, runsAt } from '../../../domain/schedules/cron/runs-at.ts'

const NOW = new Date('2026-11-23T12:00:00Z')
const MINUTE_MS = 60_000

/** Returns the minutes of a span at which a schedule runs. */
function runsBetween(expression: string, timezone: string, from: string, to: string): string[] {
  const fields = readCron(expression)
  const runs: string[] = []
  for (let at = Date.parse(from) + MINUTE_MS; at <= Date.parse(to); at += MINUTE_MS) {
    if (runsAt(fields, timezone, new Date(at))) runs.push(new Date(at).toISOString().slice(0, 16))
  }
  return runs
}

const libraryRuns = (expression: string, timezone: string, from: string, to: string): string[] => {
  const parsed = CronExpressionParser.parse(expression, { tz: timezone, currentDate: new Date(from) })
  const runs: string[] = []
  for (let time = parsed.next().toDate(); time <= new Date(to); time = parsed.next().toDate()) {
    runs.push(time.toISOString().slice(0, 16))
  }
  return runs
}

const EXPRESSIONS = [
  '30 2 * * *',
  '*/20 2 * * *',
  '15 1-3 * * *',
  '*/30 * * * *',
  '0 */2 * * *',
  '30 2 13 * SUN',
  '30 0 * * *',
  '0 12 * * SUN',
]

describe('the runs of a schedule', () => {
  it.each([
    ['Europe/Berlin', '2027-03-27T12:00Z', '2027-03-29T12:00Z'],
    ['Europe/Berlin', '2027-10-30T12:00Z', '2027-11-01T12:00Z'],
    ['America/New_York', '2027-03-13T12:00Z', '2027-03-15T12:00Z'],
    ['America/New_York', '2027-11-06T12:00Z', '2027-11-08T12:00Z'],
    ['America/Havana', '2027-03-13T12:00Z', '2027-03-15T12:00Z'],
    ['Africa/Cairo', '2027-04-29T12:00Z', '2027-05-01T12:00Z'],
    ['Asia/Beirut', '2027-03-27T12:00Z', '2027-03-29T12:00Z'],
  ] as const)('match a library where the clocks change: %s, %s', (timezone, from, to) => {
    for (const expression of EXPRESSIONS) {
      expect([expression, runsBetween(expression, timezone, from, to)]).toEqual([
        expression,
        libraryRuns(expression, timezone, from, to),
      ])
    }
  })

  // Where the library is not consistent, the rule holds: later by what is left out, and the first of two.
  it.each([
    ['15 2 * * *', 'Australia/Lord_Howe', '2027-10-02T12:00Z', '2027-10-03T12:00Z', ['2027-10-02T15:45']],
    ['45 1 * * *', 'Australia/Lord_Howe', '2027-04-03T12:00Z', '2027-04-04T12:00Z', ['2027-04-03T14:45']],
    ['30 23 * * SAT', 'America/Nuuk', '2027-03-27T12:00Z', '2027-03-28T12:00Z', ['2027-03-28T01:30']],
    ['0 0 * * *', 'America/Havana', '2027-11-07T00:00Z', '2027-11-08T00:00Z', ['2027-11-07T04:00']],
    [
      '30 1,2 * * *',
      'Antarctica/Troll',
      '2027-03-28T00:00Z',
      '2027-03-28T12:00Z',
      ['2027-03-28T01:30', '2027-03-28T02:30'],
    ],
  ])('follow the rule: %s in %s', (expression, timezone, from, to, expected) => {
    expect(runsBetween(expression, timezone, from, to)).toEqual(expected)
  })

  it.each([
    ['30 2 * * *', '2027-10-31T00:30:00Z', false],
    ['30 2 * * *', '2027-10-31T01:30:00Z', true],
    ['30 * * * *', '2027-10-31T01:30:00Z', false],
    ['30 2 * * *', '2027-03-28T01:30:00Z', false],
    ['30 1 * * *', '2027-10-31T00:30:00Z', true],
    ['0 30 2 * * * 2028', '2027-10-31T00:30:00Z', true],
    ['30 2 * * *', '2027-07-01T12:00:00Z', false],
    ['30 2 * * *', '2085-07-01T12:00:00Z', true],
  ])('do not include a time that only Temporal takes for one: %s at %s', (expression, at, expected) => {
    expect(isMistaken(readCron(expression), 'Europe/Berlin', new Date(at))).toBe(expected)
  })
})

describe('the timetable for Temporal', () => {
  it('has a calendar for each of two day fields, and either matches', () => {
    const { calendars, instants } = timetableOf(readCron('*/20 9-17/4,3 1,15 */2 1-5'), 'UTC', NOW)
    expect(instants).toEqual([])
    const shared = {
      second: [{ start: 0, end: 0, step: 1 }],
      minute: [{ start: 0, end: 40, step: 20 }],
      hour: [
        { start: 3, end: 9, step: 6 },
        { start: 13, end: 17, step: 4 },
      ],
      month: [{ start: 1, end: 11, step: 2 }],
      year: [],
    }
    expect(calendars).toEqual([
      {
        comment: 'cron expression, by day of month',
        ...shared,
        dayOfMonth: [{ start: 1, end: 15, step: 14 }],
        dayOfWeek: [{ start: 0, end: 6, step: 1 }],
      },
      {
        comment: 'cron expression, by day of week',
        ...shared,
        dayOfMonth: [{ start: 1, end: 31, step: 1 }],
        dayOfWeek: [{ start: 1, end: 5, step: 1 }],
      },
    ])
  })

  it('adds the times that clocks skip, with a calendar for all years of a day, and the times that they repeat', () => {
    const { calendars, instants } = timetableOf(readCron('30 2 * * *'), 'Europe/Berlin', NOW)
    const added = calendars.slice(1)
    expect(added).toHaveLength(7)
    expect(added.flatMap(({ dayOfMonth }) => dayOfMonth[0]?.start).sort()).toEqual([25, 26, 27, 28, 29, 30, 31])
    expect(added.every(({ hour, minute }) => hour[0]?.start === 3 && minute[0]?.start === 30)).toBe(true)
    expect(instants.length).toBeGreaterThan(15)
    expect(instants[0]).toEqual(new Date('2027-10-31T00:30:00Z'))
  })

  it.each([
    ['30 5 * * *', 'Europe/Berlin'],
    ['30 2 * * *', 'Asia/Kolkata'],
    ['*/10 * * * * *', 'UTC'],
    ['30 2 1 1 *', 'Europe/Berlin'],
  ])('adds nothing where nothing is missing: %s in %s', (expression, timezone) => {
    const { calendars, instants } = timetableOf(readCron(expression), timezone, NOW)
    expect([calendars.length, instants.length]).toEqual([1, 0])
  })

  it('stays small for a schedule that comes as often as it may', () => {
    const { calendars, instants } = timetableOf(readCron('*/10 * * * * *'), 'Europe/Berlin', NOW)
    expect([calendars.length, instants.length]).toEqual([1, 720])
  })

  it.each([
    '*/20 3,9-17/4 1,15 */2 1-5',
    '0 * * * *',
    '30 2 * * SUN',
    '0 0 */1 * MON',
    '5 0 0 1 1 * 2030-2040/5',
    '0 0 13 * *',
  ])('can be read back: %s', (expression) => {
    const fields = readCron(expression)
    expect(fieldsOf(timetableOf(fields, 'Europe/Berlin', NOW).calendars)).toEqual(fields)
  })
})
