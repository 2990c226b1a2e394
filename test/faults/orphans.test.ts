import { setTimeout as sleep } from 'node:timers/promises'
import { failOrphans } from '../../domain/turns/sweep/orphans.ts'
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
import { killProcesses } from '../support/process.ts'
import { startProxy } from '../support/proxy.ts'
import { answerOf, eventsOfTurn, expectSoundRecord, turnsOf, typesOf } from '../support/record.ts'
import { startService, type TestOptions, type TestService } from '../support/service.ts'
import { withWorkflow } from '../support/temporal.ts'
import { createWorkerPool } from '../support/workers.ts'

/** Duration of SPOKEN plus half a second. */
const ANSWERED_MS = 4500
const SPOKEN = { text: 'one two three four five six seven eight', tokens_per_second: 2 }
const SLOW = { text: Array.from({ length: 30 }, (_, index) => `word${index}`).join(' '), delay_ms: 3_600_000 }
const NEXT = { text: 'the next one' }
const calls = (name: string, args: object = {}) => ({ tool_calls: [{ id: 'one', name, arguments: args }] })
const ASK = { type: 'client_side', name: 'ask', description: 'Asks.', parameters: { type: 'object', properties: {} } }

const lab = createLab()
afterAll(killProcesses)

const start = (options: TestOptions = {}) => startService({ capabilities: [lab.capability], ...options })

type Started = { id: string; turnId: string }

/** Starts a session and waits until its first turn has reached the event `until`. Further texts are queued. */
async function startTurn({ url }: TestService, step: object, until: string, texts = ['first']): Promise<Started> {
  const id = await createScriptedSession(url, [step, NEXT], { capabilities: [{ ref: 'lab' }], tools: [ASK] })
  const posts: Json[] = []
  for (const text of texts) {
    posts.push((await call(url, 'POST', `/v1/sessions/${id}/messages`, textMessage(text))).body)
  }
  await waitFor(async () => typesOf(await listEvents(url, id)).includes(until), until)
  return { id, turnId: posts[0].id.replace('message_', 'turn_') }
}

const terminate = (service: TestService, { turnId }: Started) =>
  withWorkflow(service, turnId, (handle) => handle.terminate('a test'))

/** Waits until the record shows the end of the turn. Returns the record. */
const untilEnded = ({ url }: TestService, { id, turnId }: Started): Promise<Json[]> =>
  waitFor(async () => {
    const events = await listEvents(url, id)
    const ended = typesOf(eventsOfTurn(events, turnId)).some((type) =>
      /^turn\.(completed|failed|cancelled)$/.test(type),
    )
    return ended && events
  }, `${turnId} to end`)

/** Checks all turns, even ones that have only just begun. Resolves when the orphans found have ended. */
const reconcile = ({ platform }: TestService) => failOrphans(platform.deps, null, { graceMs: 0 })

const untilIdle = ({ url }: TestService, { id }: Started): Promise<Json[]> => waitUntilIdle(url, id)

const session = async ({ url }: TestService, id: string): Promise<Json> =>
  (await call(url, 'GET', `/v1/sessions/${id}`)).body

describe('a turn whose workflow was terminated', () => {
  let service: TestService
  beforeAll(async () => {
    service = await start()
  })
  afterAll(() => service.stop())

  it.each([
    ['its model is asked', SLOW, 'output.message.started', undefined],
    ['a tool runs', calls('wait', { ms: 3_600_000 }), 'tool.started', 'cancelled'],
    ['it waits for its client', calls('ask'), 'tool.call_requested', 'cancelled'],
  ])('while %s fails, with results for its calls, and the session goes idle', async (_when, step, until, status) => {
    const started = await startTurn(service, step, until)
    await terminate(service, started)
    await reconcile(service)
    const events = await listEvents(service.url, started.id)
    expectSoundRecord(events)
    expect(typesOf(events).slice(-2)).toEqual(['turn.failed', 'session.idled'])
    expect(events.at(-2).data).toMatchObject({
      error_code: 'internal_error',
      error: expect.stringMatching(/service/),
    })
    const results = events.filter(({ type }) => type === 'tool.completed').map(({ data }) => data.status)
    expect(results).toEqual(status === undefined ? [] : [status])
    expect((await session(service, started.id)).status).toBe('idle')
  })

  it.concurrent('is found by the worker itself, and lets the queue go on', async () => {
    const own = await start()
    try {
      const started = await startTurn(own, SLOW, 'output.message.started', ['first', 'second'])
      await terminate(own, started)
      const terminatedAt = Date.now()
      await untilEnded(own, started)
      process.stdout.write(`terminated: ended after ${Date.now() - terminatedAt} ms\n`)
      const events = await untilIdle(own, started)
      expectSoundRecord(events)
      expect(answerOf(events, turnsOf(events)[1])).toBe('the next one')
    } finally {
      await own.stop()
    }
  })

  it('records nothing more, even if its worker continues', async () => {
    const started = await startTurn(service, SPOKEN, 'output.message.delta')
    await terminate(service, started)
    await reconcile(service)
    const events = await listEvents(service.url, started.id)
    expect(typesOf(events)).not.toContain('output.message.completed')
    expect(typesOf(events).slice(-2)).toEqual(['turn.failed', 'session.idled'])
    // Only waiting for longer than the rest of the answer takes can show that nothing follows.
    await sleep(ANSWERED_MS)
    expect(await listEvents(service.url, started.id)).toEqual(events)
  })
})

describe('a turn that is cancelled in Temporal', () => {
  let service: TestService
  beforeAll(async () => {
    service = await start()
  })
  afterAll(() => service.stop())

  it.each([
    ['its model is asked', SLOW, 'output.message.started'],
    ['a tool runs', calls('wait', { ms: 3_600_000 }), 'tool.started'],
    ['it waits for its client', calls('ask'), 'tool.call_requested'],
  ])('while %s is cancelled in the record by its workflow', async (_when, step, until) => {
    const started = await startTurn(service, step, until)
    await withWorkflow(service, started.turnId, (handle) => handle.cancel())
    const events = await untilEnded(service, started)
    expectSoundRecord(events)
    expect(typesOf(events).slice(-2)).toEqual(['turn.cancelled', 'session.idled'])
    // The service's own check of its turns would have recorded a failure.
    expect(events.at(-2).data.reason).toContain('Temporal')
  })

  it('is followed by the next turn in the queue', async () => {
    const started = await startTurn(service, SLOW, 'output.message.started', ['first', 'second'])
    await withWorkflow(service, started.turnId, (handle) => handle.cancel())
    const events = await untilIdle(service, started)
    expectSoundRecord(events)
    expect(answerOf(events, turnsOf(events)[1])).toBe('the next one')
  })
})

describe('a turn that is only slow is not ended', () => {
  it.concurrent('when its model is slow, its client is slow, or its worker or Temporal is away', async () => {
    const proxy = await startProxy(process.env.TEMPORAL_ADDRESS ?? '')
    const there = await start()
    const noWorker = await start({ worker: false })
    const noTemporal = await start({ environment: { TEMPORAL_ADDRESS: proxy.address } })
    const services = [there, noWorker, noTemporal]
    try {
      const pool = createWorkerPool(noWorker, 1)
      await pool.fill()
      const waiting: [TestService, Started][] = [
        [there, await startTurn(there, SLOW, 'output.message.started')],
        [there, await startTurn(there, calls('ask'), 'tool.call_requested')],
        [there, await startTurn(there, calls('wait', { ms: 3_600_000 }), 'tool.started')],
        [noWorker, await startTurn(noWorker, SLOW, 'output.message.started')],
        [noTemporal, await startTurn(noTemporal, SLOW, 'output.message.started')],
        [noTemporal, await startTurn(noTemporal, calls('ask'), 'tool.call_requested')],
      ]
      const expectNoneEnded = async () => {
        await Promise.all(services.map(reconcile))
        for (const [service, { id }] of waiting) {
          expect((await session(service, id)).status).toMatch(/^(active|waitingfortoolresults)$/)
          expect(typesOf(await listEvents(service.url, id)).filter((type) => type === 'turn.failed')).toEqual([])
        }
      }
      await pool.killAll()
      proxy.cut()
      await expectNoneEnded()
      proxy.mend()
      const { db, workflows } = noTemporal.platform.deps
      const { id } = await db.turn.findFirstOrThrow({ select: { id: true } })
      await waitFor(() => workflows.readTurnState(id).catch(() => undefined), 'Temporal to answer again')
      await expectNoneEnded()
    } finally {
      await Promise.all(services.map((service) => service.stop()))
      await proxy.close()
    }
  })
})
