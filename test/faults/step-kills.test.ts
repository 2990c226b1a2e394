import { hostname } from 'node:os'
import { processName } from '../../lib/worker-identity.ts'
import { call, createScriptedSession, type Json, textMessage, waitFor, waitUntilIdle } from '../support/http.ts'
import { createLab } from '../support/lab.ts'
import { killProcesses, type ServiceProcess, startWorkerProcess } from '../support/process.ts'
import { startProxy } from '../support/proxy.ts'
import { expectSoundRecord, standstillMs, typesOf } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'
import { createWorkerPool } from '../support/workers.ts'

/** Longer than it takes until all turns have reached their points. */
const HELD_MS = 12_000
const WORDS = Array.from({ length: 40 }, (_, index) => `word${index}`).join(' ')
const SLOW = { text: WORDS, tokens_per_second: 3 }
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

type Scenario = {
  steps: object[]
  tools?: object[]
  /** Total number of model calls. */
  asked: number
  /** Status of the tool call, if not success. */
  status?: string
  /** Step that the worker is killed in: the model call, and the call of its answer. */
  lost?: { iteration: number; tool_call_id: string | null }
  /** Events that must be in the record before the worker is killed. */
  until: [type: string, times: number][]
}

/** Scenarios that each hold a turn at the named point for some seconds, until all turns are held. */
const HELD = {
  'before the first token': {
    steps: [{ ...QUICK, delay_ms: HELD_MS, tool_calls: call1('echo') }, QUICK],
    until: [['output.message.started', 1]],
    asked: 3,
    lost: { iteration: 1, tool_call_id: null },
  },
  'in mid-stream': {
    steps: [{ ...SLOW, tool_calls: call1('echo') }, QUICK],
    until: [['output.message.delta', 2]],
    asked: 3,
    lost: { iteration: 1, tool_call_id: null },
  },
  'while it ran a tool that may run again': {
    steps: [{ ...QUICK, tool_calls: call1('wait', { ms: HELD_MS }) }, QUICK],
    until: [['tool.started', 1]],
    asked: 2,
    lost: { iteration: 1, tool_call_id: 'one' },
  },
  'while it ran a tool that may not run again: the model is told': {
    steps: [{ ...QUICK, tool_calls: call1('once', { ms: HELD_MS }) }, QUICK],
    until: [['tool.started', 1]],
    asked: 2,
    lost: { iteration: 1, tool_call_id: 'one' },
    status: 'error',
  },
  'in the second reason step': {
    steps: [{ ...QUICK, tool_calls: call1('echo') }, SLOW],
    until: [
      ['reason.started', 2],
      ['output.message.delta', 3],
    ],
    asked: 3,
    lost: { iteration: 2, tool_call_id: null },
  },
} satisfies Record<string, Scenario>
const ASKING: Scenario = {
  steps: [{ ...QUICK, tool_calls: call1('ask') }, QUICK],
  tools: [ASK],
  until: [['tool.call_requested', 1]],
  asked: 2,
}
const APPROVING: Scenario = {
  steps: [{ ...QUICK, tool_calls: call1('wait', { ms: HELD_MS }) }, QUICK],
  tools: [APPROVED_WAIT],
  until: [['tool.call_requested', 1]],
  asked: 2,
}

let service: TestService
let killedAt: number
let killed: string
const held = new Map<string, Started>()
let answered: Started
let approved: Started
let runsApproved: Started
/**
 * One worker has all the turns at different points when it is killed. Another one starts afterwards, in the test's own
 * process.
 */
beforeAll(async () => {
  service = await startService({ worker: false, capabilities: [createLab().capability] })
  const pool = createWorkerPool(service, 1)
  await pool.fill()
  ;[answered, approved, runsApproved] = await Promise.all([reach(ASKING), reach(APPROVING), reach(APPROVING)])
  const isRun = ({ turnId }: Started) => waitFor(() => pool.findRunner(turnId), 'the worker to run a step')
  const reached = Object.entries(HELD).map(async ([name, scenario]) => {
    const turn = await reach(scenario)
    held.set(name, turn)
    await isRun(turn)
  })
  await Promise.all([...reached, answer(runsApproved.id, { approved: true }).then(() => isRun(runsApproved))])
  await answer(approved.id, { approved: true })
  killed = `${pool.list()[0]?.pid}@${hostname()}`
  await pool.killAll()
  killedAt = Date.now()
  expect(await answer(answered.id, 'fine')).toMatchObject({ status: 200, body: { accepted: 1, status: 'active' } })
  await service.startWorker()
})
afterAll(async () => {
  await killProcesses()
  await service.stop()
})

type Started = { scenario: Scenario; id: string; turnId: string; stream: OpenStream }

const count = (stream: OpenStream, type: string) => typesOf(stream.events()).filter((other) => other === type).length
const until = (stream: OpenStream, type: string, times = 1) => stream.until(() => count(stream, type) >= times)

/** Starts a turn. Resolves when it has reached the scenario's point. */
async function reach(scenario: Scenario): Promise<Started> {
  const { steps, tools = [] } = scenario
  const id = await createScriptedSession(service.url, steps, { capabilities: [{ ref: 'lab' }], tools })
  const stream = await openStream(service.url, `/v1/sessions/${id}/sse`)
  const { body } = await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
  for (const [type, times] of scenario.until) await until(stream, type, times)
  return { scenario, id, turnId: body.id.replace('message_', 'turn_'), stream }
}

const answer = (id: string, result: unknown) =>
  call(service.url, 'POST', `/v1/sessions/${id}/tool-results`, { tool_results: [{ tool_call_id: 'one', result }] })

/** Waits for the end of a turn that continued after the kill, expecting a reason step, one call, and the answer. */
async function expectFinished({ scenario, id, turnId, stream }: Started): Promise<Json[]> {
  await until(stream, 'session.idled')
  stream.close()
  const events = await waitUntilIdle(service.url, id)
  expect(stream.events()).toEqual(events)
  expectSoundRecord(events)
  const results = events.filter(({ type }) => type === 'tool.completed')
  expect(results.map(({ data }) => data.status)).toEqual([scenario.status ?? 'success'])
  for (const type of ['act.started', 'act.completed', 'turn.started', 'turn.completed']) {
    expect(typesOf(events).filter((other) => other === type)).toEqual([type])
  }
  for (const type of ['reason.started', 'reason.completed', 'llm.generation', 'output.message.completed']) {
    expect(typesOf(events).filter((other) => other === type)).toEqual([type, type])
  }
  expect(typesOf(events).filter((type) => type === 'output.message.started')).toHaveLength(scenario.asked)
  if (scenario.lost !== undefined) await expectTakenOver(id, turnId, scenario.lost)
  process.stdout.write(`recovery: ${expect.getState().currentTestName}: ${standstillMs(events, killedAt)} ms\n`)
  return events
}

/** Expects the turn to tell that the worker of this process went on with a step of the killed one. */
async function expectTakenOver(id: string, turnId: string, lost: Required<Scenario>['lost']): Promise<void> {
  const { takeovers } = (await call(service.url, 'GET', `/v1/sessions/${id}/turns/${turnId}`)).body
  const processes = { from_process: killed, to_process: processName }
  expect(takeovers).toMatchObject([{ ...lost, ...processes, reason: 'process_lost' }])
  const [{ begun_at, lost_at, taken_over_at }] = takeovers
  const times = [begun_at, lost_at, new Date(killedAt).toISOString(), taken_over_at]
  expect(times).toEqual(times.toSorted())
}

const secondGeneration = (events: Json[]): Json => events.filter(({ type }) => type === 'llm.generation')[1]

describe('a turn with a tool goes on when its worker is killed', () => {
  it.each(Object.keys(HELD))('%s', async (name) => {
    const turn = held.get(name)
    if (turn === undefined) throw new Error(`${name} was not started`)
    const events = await expectFinished(turn)
    if (turn.scenario.status !== 'error') return
    const error = expect.stringContaining('may have had its effect')
    expect(events.find(({ type }) => type === 'tool.completed').data.error).toEqual(error)
    const { content } = secondGeneration(events).data.messages.at(-1)
    expect(content[0]).toMatchObject({ tool_call_id: 'one', result: null, error })
  })
})

describe('a turn that waits for its client goes on', () => {
  it('when all workers were killed meanwhile and one starts after the answer, which takes no step over', async () => {
    const events = await expectFinished(answered)
    const { body } = await call(service.url, 'GET', `/v1/sessions/${answered.id}/turns/${answered.turnId}`)
    expect(body).not.toHaveProperty('takeovers')
    expect(secondGeneration(events).data.messages.at(-1).content[0]).toMatchObject({ result: 'fine' })
  })

  it('when its worker is killed as soon as the user has approved', async () => {
    await expectFinished(approved)
  })

  it('when its worker is killed while it runs the approved tool', async () => {
    const { id, turnId } = runsApproved
    await expectFinished(runsApproved)
    await expectTakenOver(id, turnId, { iteration: 1, tool_call_id: 'one' })
  })

  it.concurrent('when Temporal is away while the results arrive, and only the sweep can notify its workflow', async () => {
    const proxy = await startProxy(service.config.TEMPORAL_ADDRESS)
    // A separate service, so that each of its connections to Temporal can be cut.
    const cutOff = await startService({ worker: false, environment: { TEMPORAL_ADDRESS: proxy.address } })
    let worker: ServiceProcess | undefined
    try {
      worker = await startWorkerProcess(cutOff)
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
      await cutOff.startWorker()
      const events = await waitUntilIdle(cutOff.url, id)
      process.stdout.write(`Temporal back: told and done after ${Date.now() - mendedAt} ms\n`)
      expectSoundRecord(events)
      expect(events.at(-2)).toMatchObject({ type: 'turn.completed', data: { iterations: 2 } })
      await waitFor(async () => (await due()) === 0, 'the notice to be given')
      stream.close()
    } finally {
      await worker?.kill()
      await cutOff.stop()
      await proxy.close()
    }
  })
})
