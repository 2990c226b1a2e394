import { setTimeout as sleep } from 'node:timers/promises'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'
import {
  call,
  createScriptedSession,
  type Json,
  listEvents,
  textMessage,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { createLab } from '../support/lab.ts'
import { killProcesses, linesOfProcesses, startWorkerProcess, stopProcesses } from '../support/process.ts'
import { type Proxy as ServerProxy, startProxy } from '../support/proxy.ts'
import { answerOf, expectSoundRecord, textOf, typesOf } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'

const TEXT = Array.from({ length: 20 }, (_, index) => `word${index}`).join(' ')
const ASK = { type: 'client_side', name: 'ask', description: 'Asks.', parameters: { type: 'object', properties: {} } }
const calls = (name: string, args: object = {}) => ({ tool_calls: [{ id: 'one', name, arguments: args }] })

const lab = createLab()
let database: TestDatabase
let proxy: ServerProxy
let service: TestService
beforeAll(async () => {
  database = await cloneDatabase()
  const url = new URL(database.url)
  proxy = await startProxy(url.host)
  url.host = proxy.address
  service = await startService({ capabilities: [lab.capability], environment: { DATABASE_URL: url.toString() } })
})
beforeEach(() => {
  lab.runs.length = 0
})
afterAll(async () => {
  await killProcesses()
  await service.stop()
  await proxy.close()
  await database.drop()
})

type Started = { id: string; stream: OpenStream }

async function startTurn(steps: object[]): Promise<Started> {
  const id = await createScriptedSession(service.url, steps, { capabilities: [{ ref: 'lab' }], tools: [ASK] })
  const stream = await openStream(service.url, `/v1/sessions/${id}/sse`)
  await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
  return { id, stream }
}

const answer = (id: string) =>
  call(service.url, 'POST', `/v1/sessions/${id}/tool-results`, { tool_results: [{ tool_call_id: 'one', result: 'x' }] })

/** Makes Postgres unreachable until the service has noticed and `until` holds. */
async function takePostgresAway(until: () => Promise<boolean>): Promise<void> {
  proxy.cut()
  const ready = () => call(service.url, 'GET', '/health/ready')
  await waitFor(async () => (await ready()).status === 503, 'the service to miss Postgres')
  await waitFor(until, 'something to happen without Postgres')
  proxy.mend()
}

/** Waits for the end of the turn. Expects the open stream to equal the record, and returns the record. */
async function finishedRecord({ id, stream }: Started): Promise<Json[]> {
  const events = await waitFor(async () => waitUntilIdle(service.url, id).catch(() => undefined), 'the turn to end')
  await stream.until((frame) => frame.event === 'session.idled')
  stream.close()
  expect(stream.events()).toEqual(events)
  expectSoundRecord(events)
  expect(typesOf(events).slice(-2)).toEqual(['turn.completed', 'session.idled'])
  return events
}

const resultOf = (events: Json[]): Json => events.find(({ type }) => type === 'tool.completed').data

describe('a turn continues after Postgres was unreachable', () => {
  it('while its model streamed', async () => {
    const started = await startTurn([{ text: TEXT, tokens_per_second: 10 }])
    await started.stream.until((frame) => frame.event === 'output.message.delta')
    await takePostgresAway(async () => true)
    expect(answerOf(await finishedRecord(started))).toBe(TEXT)
  })

  it.each(['wait', 'once'])(
    'while a tool had its result (%s), which is recorded later; the tool runs once',
    async (tool) => {
      const started = await startTurn([calls(tool, { ms: 700 }), { text: 'done' }])
      await started.stream.until((frame) => frame.event === 'tool.started')
      const startedAt = Date.now()
      await takePostgresAway(async () => Date.now() - startedAt > 1500)
      expect(resultOf(await finishedRecord(started))).toMatchObject({ status: 'success' })
      expect(lab.runs).toHaveLength(1)
    },
  )

  it('while its client answered, which is asked to retry', async () => {
    const started = await startTurn([calls('ask'), { text: 'done' }])
    await started.stream.until((frame) => frame.event === 'tool.call_requested')
    await takePostgresAway(async () => {
      const { status, body } = await answer(started.id)
      expect({ status, body }).toEqual({
        status: 503,
        body: { error: expect.stringContaining('does not answer'), code: 'unavailable' },
      })
      return true
    })
    await waitFor(async () => (await answer(started.id)).status === 200, 'the answer to be taken')
    const events = await finishedRecord(started)
    expect(resultOf(events)).toMatchObject({ status: 'success' })
    expect(textOf(events.findLast(({ type }) => type === 'output.message.completed').data.message)).toBe('done')
  })

  it('and nothing of it is lost or told twice', async () => {
    const { id } = await startTurn([{ text: TEXT, tokens_per_second: 200 }])
    await waitUntilIdle(service.url, id)
    const before = await listEvents(service.url, id)
    await takePostgresAway(async () => true)
    await waitFor(async () => (await call(service.url, 'GET', '/health/ready')).status === 200, 'Postgres')
    expect(await listEvents(service.url, id)).toEqual(before)
  })
})

describe('a process that starts while Postgres is away', () => {
  afterEach(() => proxy.mend())
  const WAITS = 'Postgres does not answer; the start waits for it'
  const waits = (lines: string[]) => lines.filter((line) => line.includes(WAITS))
  const untilItWaits = () => waitFor(async () => waits(linesOfProcesses()).length > 0, 'the process to wait')

  it('waits for it, says so once, and then works', async () => {
    proxy.cut()
    const starting = startWorkerProcess(service)
    await untilItWaits()
    // Long enough for several attempts.
    await sleep(3500)
    proxy.mend()
    const { lines, stop } = await starting
    expect(waits(lines)).toHaveLength(1)
    expect(lines.some((line) => line.includes('Postgres answers now'))).toBe(true)
    await stop()
  })

  it('can be stopped meanwhile', async () => {
    proxy.cut()
    const starting = startWorkerProcess(service).catch((error: Error) => error.message)
    await untilItWaits()
    await stopProcesses()
    expect(await starting).toMatch(new RegExp(`ended; its last line: .*${WAITS}`))
  })
})
