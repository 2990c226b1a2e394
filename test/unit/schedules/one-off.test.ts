import { cronOfTime, parseTime, timeOfCron } from '../../../domain/schedules/clock/one-off.ts'

const NOW = new Date('2026-03-01T12:00:00.500Z')
const parse = (at: string, timezone = 'UTC') => parseTime(at, timezone, NOW).toISOString()

describe('the time of a one-off', () => {
  it.each<[string, string, string]>([
    ['2026-03-01T12:00:01Z', 'Europe/Berlin', '2026-03-01T12:00:01.000Z'],
    ['2026-03-02T09:00:00+05:30', 'Europe/Berlin', '2026-03-02T03:30:00.000Z'],
    ['2026-03-02T09:00:00.999', 'UTC', '2026-03-02T09:00:00.000Z'],
    ['2026-03-02T09:00', 'UTC', '2026-03-02T09:00:00.000Z'],
    ['2026-03-02T09:00:00', 'Europe/Berlin', '2026-03-02T08:00:00.000Z'],
    ['2026-07-02T09:00:00', 'Europe/Berlin', '2026-07-02T07:00:00.000Z'],
    ['2026-07-02T09:00:00', 'America/St_Johns', '2026-07-02T11:30:00.000Z'],
    ['2036-03-01T12:00:00Z', 'UTC', '2036-03-01T12:00:00.000Z'],
  ])('%s in %s is %s', (at, timezone, expected) => {
    expect(parse(at, timezone)).toBe(expected)
  })

  it.each<[string, string, string, string]>([
    ['does not exist', '2026-03-29T02:30:00', 'Europe/Berlin', '2026-03-29T01:30:00.000Z'],
    ['does not exist', '2026-03-08T02:30:00', 'America/New_York', '2026-03-08T07:30:00.000Z'],
    ['comes twice', '2026-10-25T02:30:00', 'Europe/Berlin', '2026-10-25T00:30:00.000Z'],
    ['comes twice', '2026-11-01T01:30:00', 'America/New_York', '2026-11-01T05:30:00.000Z'],
    ['comes twice', '2026-04-05T01:45:00', 'Australia/Lord_Howe', '2026-04-04T14:45:00.000Z'],
  ])('that %s is the first, or later: %s in %s is %s', (_, at, timezone, expected) => {
    expect(parse(at, timezone)).toBe(expected)
  })

  it.each<[string, RegExp]>([
    ['tomorrow', /^at: must be an ISO 8601 time such as/],
    ['2026-03-02', /^at: must be an ISO 8601 time/],
    ['2026-02-30T09:00:00Z', /^at: must be an ISO 8601 time/],
    ['2026-03-02T25:00:00Z', /^at: must be an ISO 8601 time/],
    ['2026-03-02T09:00:00 Europe/Berlin', /^at: must be an ISO 8601 time/],
    ['2026-03-01T12:00:00.900Z', /^at: must be in the future; it is 2026-03-01T12:00:00.500Z now$/],
    ['1999-01-01T00:00:00Z', /^at: must be in the future/],
    ['2036-03-01T12:00:01Z', /^at: must be at most 10 years ahead$/],
  ])('%s is refused', (at, problem) => {
    expect(() => parse(at)).toThrow(problem)
  })

  it('is a cron expression of seven fields, from which it is read again', () => {
    const time = new Date('2030-12-31T23:59:58Z')
    expect(cronOfTime(time)).toBe('58 59 23 31 12 * 2030')
    expect(timeOfCron(cronOfTime(time))).toEqual(time)
  })
})
