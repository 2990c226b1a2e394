import { expressionOf, inWords, nextRuns, presetOf } from '../../../console/views/schedules/cron.ts'

const after = Date.parse('2026-03-27T12:00:30Z')
const runs = (expression: string, zone: string, count = 3) =>
  nextRuns(expression, zone, after, count)?.map((at) => new Date(at).toISOString().slice(0, 16))

describe('the next runs of a schedule', () => {
  it.each<[expression: string, zone: string, expected: string[]]>([
    ['0 8 * * 1-5', 'UTC', ['2026-03-30T08:00', '2026-03-31T08:00', '2026-04-01T08:00']],
    // The clocks go forward on 29 March.
    ['0 8 * * *', 'Europe/Berlin', ['2026-03-28T07:00', '2026-03-29T06:00', '2026-03-30T06:00']],
    ['*/30 * * * *', 'Asia/Kolkata', ['2026-03-27T12:30', '2026-03-27T13:00', '2026-03-27T13:30']],
    ['15 20 * * *', 'America/New_York', ['2026-03-28T00:15', '2026-03-29T00:15', '2026-03-30T00:15']],
    ['0 0 31 * *', 'UTC', ['2026-03-31T00:00', '2026-05-31T00:00', '2026-07-31T00:00']],
    // With both day fields, either matches.
    ['0 0 1 * 0', 'UTC', ['2026-03-29T00:00', '2026-04-01T00:00', '2026-04-05T00:00']],
    ['0 0 29 2 *', 'UTC', ['2028-02-29T00:00']],
    ['0 9,17 * 6 7', 'UTC', ['2026-06-07T09:00', '2026-06-07T17:00', '2026-06-14T09:00']],
    ['0 0 31 2 *', 'UTC', []],
  ])('are known: %s in %s', (expression, zone, expected) => {
    expect(runs(expression, zone)).toEqual(expected)
  })

  it.each(['0 8 * * MON', '0 0 8 * * *', 'every day', '', '60 * * * *', '5-1 * * * *', '* * 0 * *', '*/0 * * * *'])(
    'are left to the service: %j',
    (expression) => expect(runs(expression, 'UTC')).toBeUndefined(),
  )

  it('need a time zone', () => {
    expect(() => runs('0 8 * * *', 'Mars/Base')).toThrow(RangeError)
  })
})

describe('usual times', () => {
  it.each<[expression: string, words: string | undefined]>([
    ['0 * * * *', 'Every hour'],
    ['5 * * * *', 'Every hour, 5 min past'],
    ['0 8 * * *', 'Every day at 08:00'],
    ['30  7 * * 1-5', 'Weekdays at 07:30'],
    ['0 9 * * 7', 'Every Sunday at 09:00'],
    ['0 9 15 * *', 'On day 15 of every month at 09:00'],
    ['*/15 * * * *', 'Every 15 minutes'],
    ['*/1 * * * *', 'Every minute'],
    ['*/45 * * * *', undefined],
    ['0 9 15 * 1', undefined],
    ['0 25 * * *', undefined],
    ['0 9 15 6 *', undefined],
  ])('are said in words: %s', (expression, words) => {
    expect(inWords(expression)).toBe(words)
  })

  it.each(['7 * * * *', '0 8 * * *', '30 7 * * 1-5', '0 9 * * 0', '0 9 15 * *'])(
    'are written back: %s',
    (expression) => {
      const preset = presetOf(expression)
      expect(preset && expressionOf(preset)).toBe(expression)
    },
  )
})
