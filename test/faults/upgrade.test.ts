import { readdir, readFile } from 'node:fs/promises'
import { countOf } from '../support/counts.ts'
import { createEmptyDatabase, type TestDatabase } from '../support/database.ts'
import { call, createScriptedSession, createSession, listEvents, waitFor, waitUntilIdle } from '../support/http.ts'
import { killProcesses, type ServiceProcess, startApiProcess } from '../support/process.ts'
import { eventsOfTurn, expectSoundRecord, turnsOf, typesOf } from '../support/record.ts'
import { hasReleased, RELEASED, releasedFolder } from '../support/released.ts'
import { callsOf, clientTool, post, postAndAsk, submit } from '../support/turns.ts'

const EACH = countOf('upgradedSessions')
const WORDS = Array.from({ length: 60 }, (_, index) => `word${index}`).join(' ')
const STREAMED = { text: WORDS, tokens_per_second: 6 }
const IN_TOOL = { tool_calls: [{ id: 'bash', name: 'bash', arguments: { command: 'sleep 4; echo slept' } }] }

const isThere = await hasReleased()
let database: TestDatabase
beforeAll(async () => {
  database = await createEmptyDatabase()
})
afterAll(async () => {
  await killProcesses()
  await database.drop()
})

type Running = ServiceProcess & { url: string }

/** Starts sessions that stream, that are in a tool, that wait for their client, and one for a schedule. */
async function begin({ url }: Running) {
  const many = <T>(make: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: EACH }, make))
  const start = async (steps: object[], agent: object = {}): Promise<string> => {
    const id = await createScriptedSession(url, steps, agent)
    await post(url, id)
    return id
  }
  const streaming = await many(() => start([STREAMED, { text: 'second' }, { text: 'third' }]))
  const inTool = await many(() => start([IN_TOOL, { text: 'done' }], { capabilities: [{ ref: 'virtual_bash' }] }))
  const waiting = await many(async () => {
    const steps = [{ tool_calls: callsOf('a') }, { text: 'answered' }]
    const id = await createScriptedSession(url, steps, { tools: [clientTool('a')] })
    await postAndAsk(url, id)
    return id
  })
  const scheduled = await createSession(url)
  const target = { type: 'workflow', name: 'session_message', input: { session_id: scheduled, message: 'Hello' } }
  const schedule = { name: 'often', cron_expression: '*/10 * * * * *', target }
  const { body } = await call(url, 'POST', '/v1/durable/schedules', schedule)
  return { streaming, inTool, waiting, scheduled, scheduleId: body.id as string }
}

const migrationsOf = async (folder: string): Promise<string[]> =>
  (await readdir(`${folder}/prisma/migrations`)).filter((name) => /^\d/.test(name))

/** A clone without history has no earlier release to run. */
const itOfReleases = isThere ? it : it.skip

itOfReleases(`${RELEASED.version} and this release take over from each other while sessions run`, async () => {
  const name = `upgrade-${process.pid}`
  const environment = { DATABASE_URL: database.url, REDIS_PREFIX: name, TEMPORAL_TASK_QUEUE: name }
  const folder = await releasedFolder()
  const startReleased = (): Promise<Running> => startApiProcess({ environment }, 'main.ts', {}, folder)
  const startThis = (): Promise<Running> => startApiProcess({ environment }, 'main.ts')

  const old = await startReleased()
  const { streaming, inTool, waiting, scheduled, scheduleId } = await begin(old)
  const current = await startThis()
  // Both run, and either takes messages.
  for (const [index, id] of streaming.entries()) await post(index % 2 === 0 ? old.url : current.url, id)
  await old.stop()
  for (const id of streaming) await post(current.url, id)
  const again = await startReleased()
  await current.stop()
  for (const id of waiting) {
    expect((await submit(again.url, id, [{ tool_call_id: 'a', result: 1 }])).status).toBe(200)
  }

  for (const id of [...streaming, ...inTool, ...waiting]) {
    const events = await waitUntilIdle(again.url, id)
    expectSoundRecord(events)
    expect(turnsOf(events)).toHaveLength(streaming.includes(id) ? 3 : 1)
    for (const turnId of turnsOf(events)) expect(typesOf(eventsOfTurn(events, turnId))).toContain('turn.completed')
  }
  const runs = async () =>
    (await listEvents(again.url, scheduled)).filter(({ type }) => type === 'turn.completed').length
  const before = await runs()
  await waitFor(async () => (await runs()) > before, 'the schedule to fire in the release before')
  const { body } = await call(again.url, 'GET', `/v1/durable/schedules/${scheduleId}/executions?limit=100`)
  const times = body.data.map(({ scheduled_at }: { scheduled_at: string }) => scheduled_at)
  expect(new Set(times).size).toBe(times.length)
  const gaps = times.map(Date.parse).sort((a: number, b: number) => a - b)
  expect(gaps.every((at: number, index: number) => index === 0 || at - gaps[index - 1] === 10_000)).toBe(true)
})

itOfReleases('only adds to the schema of the release before', async () => {
  const released = await migrationsOf(await releasedFolder())
  const added = (await migrationsOf('.')).filter((name) => !released.includes(name))
  expect(released.filter((name) => name > (added[0] ?? '9'))).toEqual([])
  for (const name of added) {
    const sql = await readFile(`prisma/migrations/${name}/migration.sql`, 'utf8')
    const removes = /^\s*(?!--).*\b(DROP (TABLE|COLUMN)|RENAME|SET NOT NULL|ALTER COLUMN .* TYPE)\b/im.exec(sql)
    expect([name, removes?.[0]]).toEqual([name, undefined])
  }
})
