import { call, createScriptedSession, type Json, textMessage, waitFor, waitUntilIdle } from '../support/http.ts'
import { createLab } from '../support/lab.ts'
import { killProcesses, type ServiceProcess, startWorkerProcess } from '../support/process.ts'
import { startProxy } from '../support/proxy.ts'
import { expectSoundRecord, standstillMs, typesOf } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'
import { createWorkerPool, type WorkerPool } from '../support/workers.ts'

const MOST_STANDSTILL_MS = 15_000
const WORDS = Array.from({ length: 12 }, (_, index) => `word${index}`).join(' ')
const SLOW = { text: WORDS, tokens_per_second: 12 }
const QUICK = { text: 'done' }
const call1 = (name: string, args: object = {}) => [{ id: 'one', name, arguments: args }]
const ASK = { type: 'client_side', name: 'ask', description: 'Asks.', parameters: { type: 'object', properties: {} } }
const APPROVED_WAIT = {
  type: 'builtin',
  name: 'wait',
  description: '',
  parameters: { type: 'object', properties: {} },
  policy: 'requires_approval',
}

let service: TestService
let pool: WorkerPool
beforeAll(async () => {
  service = await startService({ worker: false, capabilities: [createLab().capability] })
  pool = createWorkerPool(service, 2)
}, 60_000)
beforeEach(() => pool.fill(), 60_000)
afterAll(async () => {
  await killProcesses()
  await service.stop()
}, 30_000)

type Started = { id: string; turnId: string; stream: OpenStream }

async function startTurn(steps: object[], tools: object[] = []): Promise<Started> {
  const id = await createScriptedSession(service.url, steps, { capabilities: [{ ref: 'lab' }], tools })
  const stream = await openStream(service.url, `/v1/sessions/${id}/sse`)
  const { body } = await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
  return { id, turnId: body.id.replace('message_', 'turn_'), stream }
}

const count = (stream: OpenStream, type: string) => typesOf(stream.events()).filter((other) => other === type).length
const until = (stream: OpenStream, type: string, times = 1) => stream.until(() => count(stream, type) >= times, 40_000)

const answer = (id: string, result: unknown) =>
  call(service.url, 'POST', `/v1/sessions/${id}/tool-results`, { tool_results: [{ tool_call_id: 'one', result }] })

/** The record of a turn that went on after a kill: a reason step, one call with this status, and the answer. */
async function expectFinished({ id, stream }: Started, status: string, killedAt?: number): Promise<Json[]> {
  const events = await waitUntilIdle(service.url, id, 40_000)
  await until(stream, 'session.idled')
  stream.close()
  expect(stream.events()).toEqual(events)
  expectSoundRecord(events)
  const results = events.filter(({ type }) => type === 'tool.completed')
  expect(results.map(({ data }) => data.status)).toEqual([status])
  for (const type of ['act.started', 'act.completed', 'turn.started', 'turn.completed']) {
    expect(typesOf(events).filter((other) => other === type)).toEqual([type])
  }
  for (const type of ['reason.started', 'reason.completed', 'llm.generation', 'output.message.completed']) {
    expect(typesOf(events).filter((other) => other === type)).toEqual([type, type])
  }
  if (killedAt !== undefined) {
    const ms = standstillMs(events, killedAt)
    process.stdout.write(`recovery: ${expect.getState().currentTestName}: ${ms} ms\n`)
    expect(ms).toBeLessThan(MOST_STANDSTILL_MS)
  }
  return events
}

const attempts = (events: Json[]): number => typesOf(events).filter((type) => type === 'output.message.started').length

describe('a turn with a tool goes on when its worker is killed', () => {
  it('before the first token', async () => {
    const turn = await startTurn([{ ...QUICK, delay_ms: 1500, tool_calls: call1('echo') }, QUICK])
    await until(turn.stream, 'output.message.started')
    await pool.killRunner(turn.turnId)
    expect(attempts(await expectFinished(turn, 'success', Date.now()))).toBe(3)
  }, 60_000)

  it('in mid-stream', async () => {
    const turn = await startTurn([{ ...SLOW, tool_calls: call1('echo') }, QUICK])
    await until(turn.stream, 'output.message.delta', 2)
    await pool.killRunner(turn.turnId)
    expect(attempts(await expectFinished(turn, 'success', Date.now()))).toBe(3)
  }, 60_000)

  it('just after the calls were recorded, before the workflow hears of them', async () => {
    const turn = await startTurn([{ ...SLOW, tool_calls: call1('echo') }, QUICK])
    const runner = await waitFor(() => pool.findRunner(turn.turnId), 'a worker to run the step')
    await until(turn.stream, 'act.started')
    await pool.kill(runner)
    expect(attempts(await expectFinished(turn, 'success', Date.now()))).toBe(2)
  }, 60_000)

  it('while it ran a tool that may run again', async () => {
    const turn = await startTurn([{ ...QUICK, tool_calls: call1('wait', { ms: 1500 }) }, QUICK])
    await until(turn.stream, 'tool.started')
    await pool.killRunner(turn.turnId)
    const events = await expectFinished(turn, 'success', Date.now())
    expect(attempts(events)).toBe(2)
  }, 60_000)

  it('while it ran a tool that may not run again: the model is told', async () => {
    const turn = await startTurn([{ ...QUICK, tool_calls: call1('once', { ms: 1500 }) }, QUICK])
    await until(turn.stream, 'tool.started')
    await pool.killRunner(turn.turnId)
    const events = await expectFinished(turn, 'error', Date.now())
    const error = expect.stringContaining('may have had its effect')
    expect(events.find(({ type }) => type === 'tool.completed').data.error).toEqual(error)
    const [, second] = events.filter(({ type }) => type === 'llm.generation')
    expect(second.data.messages.at(-1).content[0]).toMatchObject({ tool_call_id: 'one', result: null, error })
  }, 60_000)

  it('in the second reason step', async () => {
    const turn = await startTurn([{ ...QUICK, tool_calls: call1('echo') }, SLOW])
    await until(turn.stream, 'reason.started', 2)
    await until(turn.stream, 'output.message.delta', 2)
    await pool.killRunner(turn.turnId)
    expect(attempts(await expectFinished(turn, 'success', Date.now()))).toBe(3)
  }, 60_000)
})

describe('a turn that waits for its client goes on', () => {
  it('when all workers were killed meanwhile and one starts after the answer', async () => {
    const turn = await startTurn([{ ...QUICK, tool_calls: call1('ask') }, QUICK], [ASK])
    await until(turn.stream, 'tool.call_requested')
    await pool.killAll()
    const killedAt = Date.now()
    expect(await answer(turn.id, 'fine')).toMatchObject({ status: 200, body: { accepted: 1, status: 'active' } })
    await pool.fill()
    const events = await expectFinished(turn, 'success', killedAt)
    const [, second] = events.filter(({ type }) => type === 'llm.generation')
    expect(second.data.messages.at(-1).content[0]).toMatchObject({ result: 'fine' })
  }, 60_000)

  it('when its worker is killed as soon as the user has approved', async () => {
    const turn = await startTurn([{ ...QUICK, tool_calls: call1('wait', { ms: 1500 }) }, QUICK], [APPROVED_WAIT])
    await until(turn.stream, 'tool.call_requested')
    await answer(turn.id, { approved: true })
    await pool.killAll()
    const killedAt = Date.now()
    await pool.fill()
    await expectFinished(turn, 'success', killedAt)
  }, 60_000)

  it('when its worker is killed while it runs what the user has approved', async () => {
    const turn = await startTurn([{ ...QUICK, tool_calls: call1('wait', { ms: 1500 }) }, QUICK], [APPROVED_WAIT])
    await until(turn.stream, 'tool.call_requested')
    await answer(turn.id, { approved: true })
    await pool.killRunner(turn.turnId)
    await expectFinished(turn, 'success', Date.now())
  }, 60_000)

  it('when Temporal is away while the results come, and only the sweeper can tell its workflow', async () => {
    const proxy = await startProxy(service.config.TEMPORAL_ADDRESS)
    // A service of its own whose every way to Temporal can be cut.
    const cutOff = await startService({ worker: false, environment: { TEMPORAL_ADDRESS: proxy.address } })
    const workers: ServiceProcess[] = []
    try {
      const worker = await startWorkerProcess(cutOff)
      workers.push(worker)
      const id = await createScriptedSession(cutOff.url, [{ ...QUICK, tool_calls: call1('ask') }, QUICK], {
        tools: [ASK],
      })
      const stream = await openStream(cutOff.url, `/v1/sessions/${id}/sse`)
      await call(cutOff.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
      await until(stream, 'tool.call_requested')
      proxy.cut()
      const tool_results = [{ tool_call_id: 'one', result: 'fine' }]
      const { status } = await call(cutOff.url, 'POST', `/v1/sessions/${id}/tool-results`, { tool_results })
      expect(status).toBe(200)
      const due = () => cutOff.platform.deps.db.turn.count({ where: { noticeDueAt: { not: null } } })
      expect(await due()).toBe(1)
      await worker.kill()
      proxy.mend()
      const mendedAt = Date.now()
      workers.push(await startWorkerProcess(cutOff))
      const events = await waitUntilIdle(cutOff.url, id, 40_000)
      process.stdout.write(`Temporal back: told and done after ${Date.now() - mendedAt} ms\n`)
      expectSoundRecord(events)
      expect(events.at(-2)).toMatchObject({ type: 'turn.completed', data: { iterations: 2 } })
      await waitFor(async () => (await due()) === 0, 'the notice to be given')
      stream.close()
    } finally {
      await Promise.all(workers.map((worker) => worker.kill()))
      await cutOff.stop()
      await proxy.close()
    }
  }, 60_000)
})
