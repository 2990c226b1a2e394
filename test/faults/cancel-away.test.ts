import { call, createSession, type Json, listEvents, textMessage, waitFor, waitUntilIdle } from '../support/http.ts'
import { createLab } from '../support/lab.ts'
import { killProcesses } from '../support/process.ts'
import { type FakeOpenai, type FakeOpenaiAnswer, startFakeOpenai } from '../support/providers/chat-completions.ts'
import { type Proxy as ServerProxy, startProxy } from '../support/proxy.ts'
import { expectSoundRecord, textOf, typesOf } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'
import { withWorkflow } from '../support/temporal.ts'
import { createWorkerPool } from '../support/workers.ts'

const SILENT = 'silent' as const
const STALLED: FakeOpenaiAnswer = { text: ['Half', ' of', ' it'], pauseMs: 50, end: 'stalled' }
const SLOW: FakeOpenaiAnswer = {
  text: Array.from({ length: 100 }, (_, index) => `word${index} `),
  pauseMs: 200,
  end: 'stalled',
}
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

/** Delays Temporal's answer to a cancellation until `work` is done. A request that waited for it would never end. */
async function beforeTemporalAnswers<T>({ platform: { deps } }: TestService, work: () => Promise<T>): Promise<T> {
  const { workflows } = deps
  const isDone = Promise.withResolvers<void>()
  deps.workflows = {
    ...workflows,
    cancelTurn: (...turn) => workflows.cancelTurn(...turn).finally(() => isDone.promise),
  }
  try {
    return await work()
  } finally {
    deps.workflows = workflows
    isDone.resolve()
  }
}

/** Cancels the turn. Expects the record to show it as soon as the request is answered. */
async function cancel(service: TestService, id: string): Promise<Json[]> {
  const { url } = service
  const { status, body } = await beforeTemporalAnswers(service, () => call(url, 'POST', `/v1/sessions/${id}/cancel`))
  expect({ status, body }).toMatchObject({ status: 200, body: { status: 'cancelled' } })
  const events = await listEvents(url, id)
  expectSoundRecord(events)
  expect(typesOf(events).slice(-2)).toEqual(['turn.cancelled', 'session.idled'])
  return events
}

/** Returns the status of a turn's workflow, read from Temporal directly, once that knows of it. */
const statusOf = (service: TestService, turnId: string): Promise<string> =>
  withWorkflow(service, turnId, async (workflow) => (await workflow.describe()).status.name)

const untilClosed = (service: TestService, turnId: string) =>
  waitFor(async () => {
    const status = await statusOf(service, turnId)
    return status !== 'RUNNING' && status
  }, 'the workflow to end')

describe('cancelling while Redis and Temporal are there', () => {
  it.each([
    ['that has not said a word', SILENT],
    ['that has fallen silent', STALLED],
  ])('hangs up on a model %s', async (_what, given) => {
    const service = await start({}, true)
    try {
      const { id } = await startTurn(service, given)
      const request = await untilAsked()
      if (given !== SILENT) await untilType(service, id, 'output.message.delta')
      await cancel(service, id)
      expect(await request.closed).toBe('hung_up')
      expect(provider.requests).toHaveLength(1)
    } finally {
      await service.stop()
    }
  })
})

describe('cancelling while no worker is there', () => {
  it('settles the turn at once, and a restarted worker runs nothing of it', async () => {
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
      await service.startWorker()
      expect(await untilClosed(service, turnId)).toBe('CANCELLED')
      expect(await listEvents(service.url, id)).toEqual(events)
      expect(provider.requests).toHaveLength(1)
    } finally {
      await killProcesses()
      await service.stop()
    }
  })

  it('leaves the session ready for the next message', async () => {
    const service = await start({}, false)
    try {
      const { id } = await startTurn(service, { text: ['Hello'] })
      await cancel(service, id)
      await service.startWorker()
      await call(service.url, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage('And now?'))
      const events = await waitUntilIdle(service.url, id)
      expectSoundRecord(events)
      expect(typesOf(events).filter((type) => /^turn\./.test(type))).toEqual([
        ...['turn.cancelled', 'turn.started', 'turn.completed'],
      ])
      expect(provider.requests).toHaveLength(1)
    } finally {
      await service.stop()
    }
  })
})

describe('cancelling while a server is away', () => {
  let temporal: ServerProxy
  let redis: ServerProxy
  let service: TestService
  beforeEach(async () => {
    temporal = await startProxy(process.env.TEMPORAL_ADDRESS ?? '')
    redis = await startProxy(new URL(process.env.REDIS_URL ?? '').host)
    service = await start({ TEMPORAL_ADDRESS: temporal.address, REDIS_URL: `redis://${redis.address}` }, true)
  })
  afterEach(async () => {
    temporal.mend()
    await service.stop()
    await Promise.all([temporal.close(), redis.close()])
  })

  it('Temporal: a waiting turn is cancelled at once, and its workflow when Temporal is back', async () => {
    const { id, turnId } = await startTurn(service, ASKS)
    await untilType(service, id, 'tool.call_requested')
    temporal.cut()
    const events = await cancel(service, id)
    expect(events.find(({ type }) => type === 'tool.completed').data).toMatchObject({ status: 'cancelled' })
    temporal.mend()
    expect(await untilClosed(service, turnId)).toBe('CANCELLED')
    expect(await listEvents(service.url, id)).toEqual(events)
    const due = () => service.platform.deps.db.turn.count({ where: { noticeDueAt: { not: null } } })
    await waitFor(async () => (await due()) === 0, 'the notice to be given')
  })

  it('Temporal: a silent model call is stopped over Redis', async () => {
    const { id } = await startTurn(service, SILENT)
    const request = await untilAsked()
    temporal.cut()
    await cancel(service, id)
    expect(await request.closed).toBe('hung_up')
  })

  it('Redis: a silent model call is stopped by its next heartbeat', async () => {
    const { id, turnId } = await startTurn(service, SILENT)
    const request = await untilAsked()
    expect(await statusOf(service, turnId)).toBe('RUNNING')
    redis.cut()
    await cancel(service, id)
    const cancelledAt = Date.now()
    expect(await request.closed).toBe('hung_up')
    process.stdout.write(`cancelled without Redis, silent model: hung up after ${Date.now() - cancelledAt} ms\n`)
    await untilClosed(service, turnId)
  })

  it('both: a streaming model call is stopped by its next append', async () => {
    const { id } = await startTurn(service, SLOW)
    await untilType(service, id, 'output.message.delta')
    const request = await untilAsked()
    temporal.cut()
    redis.cut()
    const events = await cancel(service, id)
    expect(await request.closed).toBe('hung_up')
    expect(await listEvents(service.url, id)).toEqual(events)
  })

  it('Redis: a running tool is stopped by its next heartbeat, and the workflow ends', async () => {
    const waits: FakeOpenaiAnswer = { toolCalls: [{ id: 'one', name: 'wait', arguments: '{"ms":3600000}' }] }
    const { id, turnId } = await startTurn(service, waits)
    const stream = await openStream(service.url, `/v1/sessions/${id}/sse`)
    await stream.until((frame) => frame.event === 'tool.started')
    await waitFor(async () => lab.runs.length === 1, 'the tool to run')
    redis.cut()
    const events = await cancel(service, id)
    const cancelledAt = Date.now()
    await waitFor(async () => lab.runs[0]?.aborted, 'the tool to be aborted')
    process.stdout.write(`cancelled without Redis, tool: aborted after ${Date.now() - cancelledAt} ms\n`)
    await untilClosed(service, turnId)
    await stream.until((frame) => frame.event === 'session.idled')
    stream.close()
    expect(stream.events()).toEqual(events)
  })
})
