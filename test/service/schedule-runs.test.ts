import { call, type Json, waitFor } from '../support/http.ts'
import { NOOP, SCHEDULES, scheduleCalls } from '../support/schedules.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

const EVERY_MS = 10_000
const AT_ONCE = 8

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})
const { add, read } = scheduleCalls(() => api)

const sleepUntil = (time: number) => new Promise((resolve) => setTimeout(resolve, time - Date.now()))
const times = async (id: string): Promise<string[]> =>
  (await read(`${SCHEDULES}/${id}/executions`)).data.map(({ scheduled_at }: Json) => scheduled_at).toReversed()
const onTheClock = (time: number) => new Date(Math.floor(time / EVERY_MS) * EVERY_MS).toISOString()

/** Seven fields that come at one second only. */
function expressionOf(time: Date): string {
  const [date = '', clock = ''] = time.toISOString().split(/T|\./)
  const [year, month, day] = date.split('-').map(Number)
  const [hour, minute, second] = clock.split(':').map(Number)
  return `${second} ${minute} ${hour} ${day} ${month} * ${year}`
}

describe('a schedule that comes once', () => {
  it('runs, however often it is read when it is due, and however late it was created', async () => {
    const soon = new Date(Date.now() + 3000)
    const created = await Promise.all(
      Array.from({ length: AT_ONCE }, () => add({ cron_expression: expressionOf(soon), target: NOOP })),
    )
    const last = await add({ cron_expression: expressionOf(new Date(Date.now() + 3000)), target: NOOP })
    const ids: string[] = [...created, last].map(({ body }) => body.id)
    const done = Date.now() + 5000
    while (Date.now() < done) await read(`${SCHEDULES}?limit=100`)
    await waitFor(async () => {
      const runs = await Promise.all(ids.map(times))
      return runs.every((one) => one.length === 1) || undefined
    }, 'a run of each')
  })
})

describe('a run that was due', () => {
  it.each([
    [
      'pausing and resuming',
      (path: string) => call(api, 'POST', `${path}/pause`).then(() => call(api, 'POST', `${path}/resume`)),
    ],
    ['another time zone', (path: string) => call(api, 'PATCH', path, { timezone: 'Europe/Berlin' })],
  ])('is not lost by %s right after', async (_title, change) => {
    const { body } = await add({ cron_expression: '*/10 * * * * *', target: NOOP })
    const due = (Math.floor(Date.now() / EVERY_MS) + 1) * EVERY_MS
    await sleepUntil(due + 30)
    expect((await change(`${SCHEDULES}/${body.id}`)).status).toBe(200)
    await waitFor(async () => (await times(body.id)).includes(onTheClock(due)) || undefined, 'the run')
    expect((await times(body.id)).filter((time) => time === onTheClock(due))).toHaveLength(1)
    await call(api, 'DELETE', `${SCHEDULES}/${body.id}`)
  })
})
