import { randomUUID } from 'node:crypto'
import { CronExpressionParser } from 'cron-parser'
import { Cron } from 'croner'
import { pino } from 'pino'
import { newUuid } from '../../../domain/kit/ids.ts'
import { parseCron } from '../../../domain/schedules/cron/parse.ts'
import { readCron } from '../../../domain/schedules/cron/read.ts'
import { connectTemporal, type Temporal } from '../../../platform/temporal/temporal.ts'

const DAY_MS = 86_400_000
const ALL = 100_000
const YEAR = 2027
/** Instants at which the clocks change. */
const CHANGES = {
  'Europe/Berlin': ['2027-03-28T01:00:00Z', '2027-10-31T01:00:00Z'],
  'America/New_York': ['2027-03-14T07:00:00Z', '2027-11-07T06:00:00Z'],
}
type Zone = keyof typeof CHANGES

const EXPRESSIONS = [
  '30 2 * * *',
  '30 1 * * *',
  '*/20 2 * * *',
  '15 1,2,3 * * *',
  '*/15 0-3 * * *',
  '0 * * * *',
  '*/30 * * * *',
  '0 */2 * * *',
  '10 1-23/2 * * *',
  '0 0 * * *',
  '30 2 13 * SUN',
  '30 1,2 1-7 * MON',
  '0 2 * MAR,OCT,NOV SUN',
  '45 23 * * MON-FRI',
  '*/20 30 2 * * *',
  '15 */10 1-2 * * *',
]
const WITH_YEARS = ['0 30 2 * * * 2027', '*/30 0,30 1-2 * * * 2027-2031/2', '0 15 * * * SUN 2027,2029']
/** Expressions whose times of a whole year are few. */
const YEARLY = [
  '30 2 * * *',
  '30 1 * * *',
  '0 0 * * *',
  '30 2 13 * SUN',
  '0 2 29 2 *',
  '0 12 31 * *',
  '5 4 * JUL-SEP/2 1-5',
]

let temporal: Temporal
const kept: string[] = []
beforeAll(() => {
  const place = { TEMPORAL_NAMESPACE: 'default', TEMPORAL_TASK_QUEUE: `unpolled-${randomUUID()}` }
  const config = { TEMPORAL_ADDRESS: process.env.TEMPORAL_ADDRESS ?? '', ...place }
  temporal = connectTemporal(config, pino({ level: 'silent' }))
})
afterAll(async () => {
  await Promise.all(kept.map(temporal.clock.remove))
  await temporal.close()
})

/** Keeps a paused schedule in Temporal, which says its times all the same. */
async function keep(expression: string, timezone: string): Promise<string> {
  const scheduleId = newUuid()
  kept.push(scheduleId)
  const ids = { scheduleId, organizationId: newUuid(), sessionId: null }
  const fields = readCron(expression)
  await temporal.clock.keep({ ...ids, revision: 1, fields, timezone, pausedBecause: 'By a test.' })
  return scheduleId
}

const isoOf = (times: Date[]): string[] => times.map((time) => time.toISOString())

/** Returns the times after `after` and up to `until` as cron-parser says them. It knows no years. */
function libraryTimes(expression: string, timezone: string, after: Date, until: Date): string[] {
  const fields = expression.split(' ')
  const years = fields.length === 7 ? parseCron(expression).years : null
  const parsed = CronExpressionParser.parse(fields.slice(0, 6).join(' '), { tz: timezone, currentDate: after })
  const times: Date[] = []
  for (;;) {
    const time = parsed.next().toDate()
    if (time > until) return isoOf(times)
    if (years === null || years.includes(time.getUTCFullYear())) times.push(time)
  }
}

/** Returns the times as croner says them, which differs only in restricted hours that clocks skip or repeat. */
const secondLibraryTimes = (expression: string, timezone: string, after: Date, until: Date): string[] =>
  isoOf(new Cron(expression, { timezone }).nextRuns(1000, after).filter((time) => time <= until))

const spans = (zone: Zone) =>
  CHANGES[zone].map((change) => {
    const at = Date.parse(change)
    return { after: new Date(at - 2 * DAY_MS), until: new Date(at + 2 * DAY_MS) }
  })

const zones = Object.keys(CHANGES) as Zone[]

describe.each(zones)('the times that Temporal says in %s', (zone) => {
  it.each([...EXPRESSIONS, ...WITH_YEARS])(
    'match a cron library around both changes of a year: %s',
    async (expression) => {
      const id = await keep(expression, zone)
      for (const { after, until } of spans(zone)) {
        const times = isoOf(await temporal.clock.timesBetween(id, after, until, ALL))
        expect(times).toEqual(libraryTimes(expression, zone, after, until))
      }
    },
  )

  it.each(YEARLY)('match a cron library in a whole year: %s', async (expression) => {
    const id = await keep(expression, zone)
    const [after, until] = [new Date(Date.UTC(YEAR)), new Date(Date.UTC(YEAR + 1))]
    const times = isoOf(await temporal.clock.timesBetween(id, after, until, ALL))
    expect(times).toEqual(libraryTimes(expression, zone, after, until))
  })

  it.each(['0 * * * *', '*/30 * * * *', '10,40 */12 1 * SAT', '45 23 * * MON-FRI'])(
    'match another library: %s',
    async (expression) => {
      const id = await keep(expression, zone)
      for (const { after, until } of spans(zone)) {
        const times = isoOf(await temporal.clock.timesBetween(id, after, until, ALL))
        expect(times).toEqual(secondLibraryTimes(expression, zone, after, until))
      }
    },
  )
})
