import { type FakeOpenai, type FakeOpenaiAnswer, startFakeOpenai } from '../support/fake-openai.ts'
import { call, createSession, type Json, listEvents, textMessage, waitFor, waitUntilIdle } from '../support/http.ts'
import { createLab } from '../support/lab.ts'
import { killProcesses } from '../support/process.ts'
import { type Proxy as ServerProxy, startProxy } from '../support/proxy.ts'
import { expectSoundRecord, textOf, typesOf } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'
import { withClient } from '../support/temporal.ts'
import { createWorkerPool } from '../support/workers.ts'

/** What was promised for a turn that runs: it stops within a second. */
const SOON_MS = 1000
/** Without Redis the worker learns of it with a heartbeat, each 1.5 s at the latest. */
const BY_HEARTBEAT_MS = 6000
const SILENT = 'silent' as const
const STALLED: FakeOpenaiAnswer = { text: ['Half', ' of', ' it'], pauseMs: 50, end: 'stalled' }
const SLOW: FakeOpenaiAnswer = { text: Array.from({ length: 100 }, (_, index) => `word${index} `), pauseMs: 200 }
const ASK = { type: 'client_side', name: 'ask', description: 'Asks.', parameters: { type: 'object', properties: {} } }
const ASKS: FakeOpenaiAnswer = { toolCalls: [{ id: 'one', name: 'ask', arguments: '{}' }] }

const lab = createLab()
let answers: FakeOpenaiAnswer[] = []
let provider: FakeOpenai
beforeAll(async () => {
  provider = await startFakeOpenai(() => answers.shift() ?? { status: 400, message: 'asked once too often' })
})
beforeEach(() => {
  answers = []
  provider.requests.length = 0
  lab.runs.length = 0
})
afterAll(() => provider.close())

const start = (environment: Record<string, string>, worker: boolean): Promise<TestService> =>
  startService({
    worker,
    capabilities: [lab.capability],
    environment: { DEFAULT_OPENAI_API_KEY: 'sk-x', DEFAULT_OPENAI_BASE_URL: provider.baseUrl, ...environment },
  })

async function startTurn({ url }: TestService, ...given: FakeOpenaiAnswer[]): Promise<{ id: string; turnId: string }> {
  answers = given
  const id = await createSession(url, undefined, { tools: [ASK], capabilities: [{ ref: 'lab' }] })
  const { body } = await call(url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
  return { id, turnId: body.id.replace('message_', 'turn_') }
}

const untilType = ({ url }: TestService, id: string, type: string) =>
  waitFor(async () => typesOf(await listEvents(url, id)).includes(type), type)

const untilAsked = (count = 1) => waitFor(async () => provider.requests[count - 1], `${count} model calls`)

/** Cancels; the record says so in the moment of the answer. */
async function cancel({ url }: TestService, id: string): Promise<Json[]> {
  const startedAt = Date.now()
  const { status, body } = await call(url, 'POST', `/v1/sessions/${id}/cancel`)
  expect({ status, body }).toMatchObject({ status: 200, body: { status: 'cancelled' } })
  expect(Date.now() - startedAt).toBeLessThan(SOON_MS)
  const events = await listEvents(url, id)
  expectSoundRecord(events)
  expect(typesOf(events).slice(-2)).toEqual(['turn.cancelled', 'session.idled'])
  return events
}

/** How the workflow of a turn stands in Temporal, asked past the service. */
const statusOf = (service: TestService, turnId: string): Promise<string> =>
  withClient(service, async (client) => (await client.workflow.getHandle(turnId).describe()).status.name)

const untilClosed = (service: TestService, turnId: string) =>
  waitFor(async () => {
    const status = await statusOf(service, turnId)
    return status !== 'RUNNING' && status
  }, 'the workflow to end')

describe('cancelling while Redis and Temporal are there', () => {
  it.each([
    ['that has not said a word', SILENT],
    ['that has fallen silent', STALLED],
  ])('hangs up on a model %s within a second', async (_what, given) => {
    const service = await start({}, true)
    try {
      const { id } = await startTurn(service, given)
      const request = await untilAsked()
      if (given !== SILENT) await untilType(service, id, 'output.message.delta')
      await cancel(service, id)
      const cancelledAt = Date.now()
      expect(await request.closed).toBe('hung_up')
      expect(Date.now() - cancelledAt).toBeLessThan(SOON_MS)
      expect(provider.requests).toHaveLength(1)
    } finally {
      await service.stop()
    }
  })
})

describe('cancelling while no worker is there', () => {
  it('settles the turn at once, and a worker that comes back runs nothing of it', async () => {
    const service = await start({}, false)
    const pool = createWorkerPool(service, 1)
    try {
      await pool.fill()
      const { id, turnId } = await startTurn(service, SLOW)
      await untilType(service, id, 'output.message.delta')
      await pool.killAll()
      const events = await cancel(service, id)
      const kept = events.find(({ type }) => type === 'output.message.completed').data.message
      expect(kept.metadata.interrupted).toBe(true)
      expect(textOf(kept)).toBe(events.findLast(({ type }) => type === 'output.message.delta').data.accumulated)
      await pool.fill()
      expect(await untilClosed(service, turnId)).toBe('CANCELLED')
      expect(await listEvents(service.url, id)).toEqual(events)
      expect(provider.requests).toHaveLength(1)
    } finally {
      await killProcesses()
      await service.stop()
    }
  }, 60_000)

  it('leaves the session ready for the next message', async () => {
    const service = await start({}, false)
    try {
      const { id } = await startTurn(service, { text: ['Hello'] })
      await cancel(service, id)
      service.startWorker()
      await call(service.url, 'POST', `/v1/sessions/${id}/messages?wait=20`, textMessage('And now?'))
      const events = await waitUntilIdle(service.url, id)
      expectSoundRecord(events)
      expect(typesOf(events).filter((type) => /^turn\./.test(type))).toEqual([
        ...['turn.cancelled', 'turn.started', 'turn.completed'],
      ])
      expect(provider.requests).toHaveLength(1)
    } finally {
      await service.stop()
    }
  }, 60_000)
})

describe('cancelling while a server is away', () => {
  let proxy: ServerProxy
  let service: TestService
  const serve = async (server: 'TEMPORAL_ADDRESS' | 'REDIS_URL') => {
    const target = new URL(
      server === 'REDIS_URL' ? (process.env.REDIS_URL ?? '') : `tcp://${process.env.TEMPORAL_ADDRESS}`,
    )
    proxy = await startProxy(target.host)
    service = await start({ [server]: server === 'REDIS_URL' ? `redis://${proxy.address}` : proxy.address }, true)
  }
  afterEach(async () => {
    proxy.mend()
    await service.stop()
    await proxy.close()
  }, 60_000)

  it('Temporal: a waiting turn is cancelled at once, and its workflow when Temporal is back', async () => {
    await serve('TEMPORAL_ADDRESS')
    const { id, turnId } = await startTurn(service, ASKS)
    await untilType(service, id, 'tool.call_requested')
    proxy.cut()
    const events = await cancel(service, id)
    expect(events.find(({ type }) => type === 'tool.completed').data).toMatchObject({ status: 'cancelled' })
    proxy.mend()
    expect(await untilClosed(service, turnId)).toBe('CANCELLED')
    expect(await listEvents(service.url, id)).toEqual(events)
    const due = () => service.platform.deps.db.turn.count({ where: { noticeDueAt: { not: null } } })
    await waitFor(async () => (await due()) === 0, 'the notice to be given')
  }, 60_000)

  it('Temporal: a silent model call stops by the news over Redis', async () => {
    await serve('TEMPORAL_ADDRESS')
    const { id } = await startTurn(service, SILENT)
    const request = await untilAsked()
    proxy.cut()
    await cancel(service, id)
    const cancelledAt = Date.now()
    expect(await request.closed).toBe('hung_up')
    expect(Date.now() - cancelledAt).toBeLessThan(SOON_MS)
    proxy.mend()
  }, 60_000)

  it('Redis: a silent model call stops by the next heartbeat', async () => {
    await serve('REDIS_URL')
    const { id, turnId } = await startTurn(service, SILENT)
    const request = await untilAsked()
    proxy.cut()
    await cancel(service, id)
    const cancelledAt = Date.now()
    expect(await request.closed).toBe('hung_up')
    const tookMs = Date.now() - cancelledAt
    process.stdout.write(`cancelled without Redis, silent model: hung up after ${tookMs} ms\n`)
    expect(tookMs).toBeLessThan(BY_HEARTBEAT_MS)
    await untilClosed(service, turnId)
  }, 60_000)

  it('Redis: a model call that streams stops by its next words', async () => {
    await serve('REDIS_URL')
    const { id } = await startTurn(service, SLOW)
    await untilType(service, id, 'output.message.delta')
    const request = await untilAsked()
    proxy.cut()
    const events = await cancel(service, id)
    const cancelledAt = Date.now()
    expect(await request.closed).toBe('hung_up')
    expect(Date.now() - cancelledAt).toBeLessThan(SOON_MS)
    expect(await listEvents(service.url, id)).toEqual(events)
  }, 60_000)

  it('Redis: a running tool stops by the next heartbeat, and its workflow ends', async () => {
    await serve('REDIS_URL')
    const waits: FakeOpenaiAnswer = { toolCalls: [{ id: 'one', name: 'wait', arguments: '{"ms":30000}' }] }
    const { id, turnId } = await startTurn(service, waits)
    const stream = await openStream(service.url, `/v1/sessions/${id}/sse`)
    await stream.until((frame) => frame.event === 'tool.started')
    await waitFor(async () => lab.runs.length === 1, 'the tool to run')
    proxy.cut()
    const events = await cancel(service, id)
    const cancelledAt = Date.now()
    await waitFor(async () => lab.runs[0]?.aborted, 'the tool to be aborted', BY_HEARTBEAT_MS)
    process.stdout.write(`cancelled without Redis, tool: aborted after ${Date.now() - cancelledAt} ms\n`)
    await untilClosed(service, turnId)
    await stream.until((frame) => frame.event === 'session.idled')
    stream.close()
    expect(stream.events()).toEqual(events)
  }, 60_000)
})
