import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { call, type Json, waitFor } from '../support/http.ts'
import { killProcesses, startApiProcess } from '../support/process.ts'
import { startService, type TestService } from '../support/service.ts'
import { withClient } from '../support/temporal.ts'

/** Takes connections and never answers, as a Temporal that is frozen. */
const silent = createServer()
let service: TestService
let stuck: { TEMPORAL_ADDRESS: string }
beforeAll(async () => {
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  stuck = { TEMPORAL_ADDRESS: `127.0.0.1:${(silent.address() as AddressInfo).port}` }
  service = await startService()
})
afterAll(async () => {
  await killProcesses()
  await service.stop()
  silent.close()
})

const SCHEDULES = '/v1/durable/schedules'
const NOON = '30 12 * * *'
const hourly = { name: 'Killed', cron_expression: '0 * * * *', target: { type: 'activity', name: 'noop' } }

/**
 * Sends requests whose process is killed when the changes are recorded, and before Temporal knows of them. The last of
 * each is the record of its change.
 */
async function killedIn(
  ...requests: [method: string, path: string, body: object | undefined, () => Promise<unknown>][]
) {
  const api = await startApiProcess(service, 'api/main.ts', stuck)
  const answers = requests.map(async ([method, path, body, isRecorded]) => {
    const answer = call(api.url, method, path, body).catch(() => 'killed')
    await waitFor(isRecorded, 'the record of it')
    return { answer }
  })
  const sent = await Promise.all(answers)
  await api.kill()
  for (const { answer } of sent) expect(await answer).toBe('killed')
}

const inTemporal = (id: string) =>
  withClient(service, (client) =>
    client.schedule
      .getHandle(`schedule-${id}`)
      .describe()
      .catch(() => undefined),
  )

describe('a schedule, when the process is killed between the record and Temporal', () => {
  const add = async (name: string): Promise<string> =>
    (await call(service.url, 'POST', SCHEDULES, { ...hourly, name })).body.id
  const find = async (where: object) => (await service.platform.deps.db.schedule.findFirst({ where })) ?? undefined
  const nextOf = async (id: string): Promise<Json> =>
    (await call(service.url, 'GET', `${SCHEDULES}/${id}`)).body.next_trigger_at

  it('is created, changed and deleted in Temporal all the same', async () => {
    const [changed, deleted] = [await add('Changed'), await add('Deleted')]
    const isChanged = () => find({ id: changed, cronExpression: NOON })
    const isDeleted = () => find({ id: deleted, deletedAt: { not: null } })
    await killedIn(
      ['POST', SCHEDULES, hourly, () => find({ name: hourly.name })],
      ['PATCH', `${SCHEDULES}/${changed}`, { cron_expression: NOON }, isChanged],
      ['DELETE', `${SCHEDULES}/${deleted}`, undefined, isDeleted],
    )
    const { id: created = '' } = (await find({ name: hourly.name })) ?? {}
    const soon = async (id: string) => waitFor(async () => (await nextOf(id)) ?? undefined, 'its next time')
    expect(await soon(created)).toMatch(/:00:00\.000Z$/)
    expect(await soon(changed)).toMatch(/T12:30:00\.000Z$/)
    for (const id of [created, changed]) {
      expect((await inTemporal(id))?.info.nextActionTimes[0]?.toISOString()).toBe(await nextOf(id))
    }
    await waitFor(async () => (await inTemporal(deleted)) === undefined || undefined, 'its clock to go')
  })
})
