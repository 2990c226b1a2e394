import type { Deps } from '../../../domain/deps.ts'
import { cancelTurns } from '../../../domain/turns/control/cancel.ts'
import { failTurn } from '../../../domain/turns/control/fail-turn.ts'
import { reason } from '../../../domain/turns/run/reason.ts'
import { failTool, runTool } from '../../../domain/turns/run/tool.ts'
import type { TurnPlace } from '../../../domain/turns/turn-place.ts'
import { ANYBODY, withWorkflows } from '../../support/by-hand.ts'
import { call, createScriptedSession, type Json, listEvents, textMessage, waitFor } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { createLab, type LabRun } from '../../support/lab.ts'
import { expectSoundRecord, typesOf } from '../../support/record.ts'
import { startService, type TestService } from '../../support/service.ts'

const lab = createLab()
let service: TestService
let deps: Deps
beforeAll(async () => {
  service = await startService({ worker: false, capabilities: [lab.capability] })
  const workflows = {
    startTurn: async () => {},
    resumeTurn: async () => {},
    cancelTurn: async () => {},
    readTurnState: async () => 'running' as const,
  }
  deps = withWorkflows(service.platform.deps, workflows)
})
beforeEach(() => {
  lab.runs.length = 0
})
afterAll(() => service.stop())

const never = new AbortController().signal

/** Creates a turn whose model has called one lab tool that has not run yet. */
async function createCall(name: string, args: object = {}): Promise<{ id: string; turn: TurnPlace }> {
  const steps = [{ tool_calls: [{ id: 'one', name, arguments: args }] }, { text: 'done' }]
  const id = await createScriptedSession(service.url, steps, { capabilities: [{ ref: 'lab' }] })
  const session = (await call(service.url, 'GET', `/v1/sessions/${id}`)).body
  const message = (await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))).body
  const organizationId = toUuid(session.organization_id)
  const turn = { organizationId, sessionId: toUuid(id), turnId: toUuid(message.id) }
  expect(await reason(deps, turn, 1, { fence: 1, signal: never })).toMatchObject({ outcome: 'act' })
  return { id, turn }
}

const run = (turn: TurnPlace, fence: number, signal = never) => runTool(deps, turn, 1, 0, { fence, signal })
const untilRuns = (count: number): Promise<LabRun[]> =>
  waitFor(async () => lab.runs.length >= count && lab.runs, `${count} runs`)

/** Returns the results in the record, after checking that it is sound. */
async function results(id: string): Promise<Json[]> {
  const events = await listEvents(service.url, id)
  expectSoundRecord(events)
  expect(typesOf(events).filter((type) => type === 'tool.started').length).toBeLessThanOrEqual(1)
  return events.filter(({ type }) => type === 'tool.completed').map(({ data }) => data)
}

/** Begins a run and lets its process die while the tool runs. */
async function interruptRun(turn: TurnPlace, fence: number): Promise<void> {
  const died = new AbortController()
  const first = run(turn, fence, died.signal)
  await untilRuns(1)
  died.abort(new Error('the process dies'))
  await expect(first).rejects.toThrow('the process dies')
}

describe('a second attempt at a tool call', () => {
  it('is told that the first may have run, when the tool may run again', async () => {
    const { id, turn } = await createCall('wait', { ms: 2000 })
    await interruptRun(turn, 1)
    expect(await run(turn, 2)).toEqual({ outcome: 'done' })
    expect(lab.runs.map(({ mayHaveRun, callId }) => ({ mayHaveRun, callId }))).toEqual([
      { mayHaveRun: false, callId: 'one' },
      { mayHaveRun: true, callId: 'one' },
    ])
    expect(await results(id)).toMatchObject([{ status: 'success' }])
  })

  it('does not run a tool that may not run again, and says so', async () => {
    const { id, turn } = await createCall('once', { ms: 20_000 })
    await interruptRun(turn, 1)
    expect(await run(turn, 2)).toEqual({ outcome: 'done' })
    expect(lab.runs).toHaveLength(1)
    const error = expect.stringContaining('may have had its effect')
    expect(await results(id)).toMatchObject([{ status: 'error', error }])
  })

  it('runs the tool as a first attempt if the earlier one died before its claim', async () => {
    const { id, turn } = await createCall('once', { ms: 1 })
    // The higher fence is all that the record shows of the earlier attempt.
    expect(await run(turn, 7)).toEqual({ outcome: 'done' })
    expect(lab.runs).toMatchObject([{ mayHaveRun: false }])
    expect(await results(id)).toMatchObject([{ status: 'success' }])
  })

  it('runs nothing and returns done if the first has recorded its result', async () => {
    const { id, turn } = await createCall('once', { ms: 1 })
    await run(turn, 1)
    const before = await listEvents(service.url, id)
    expect(await run(turn, 2)).toEqual({ outcome: 'done' })
    expect(lab.runs).toHaveLength(1)
    expect(await listEvents(service.url, id)).toEqual(before)
  })
})

describe('an attempt that is still alive after a newer one has begun', () => {
  it('cannot write its result', async () => {
    const { id, turn } = await createCall('wait', { ms: 2500 })
    const zombie = run(turn, 1)
    await untilRuns(1)
    const newer = run(turn, 2)
    await untilRuns(2)
    // The append of the old attempt is refused. The new attempt completes shortly after.
    await expect(zombie).rejects.toThrow('newer attempt')
    expect(await newer).toEqual({ outcome: 'done' })
    expect(await results(id)).toMatchObject([{ status: 'success' }])
  })

  it('does not even begin', async () => {
    const { turn } = await createCall('wait', { ms: 1500 })
    const newer = run(turn, 2)
    await untilRuns(1)
    await expect(run(turn, 1)).rejects.toThrow('newer attempt')
    expect(await newer).toEqual({ outcome: 'done' })
    expect(lab.runs).toHaveLength(1)
  })

  it('leaves one result when both begin at once', async () => {
    const { id, turn } = await createCall('wait', { ms: 100 })
    const both = await Promise.allSettled([run(turn, 1), run(turn, 2), run(turn, 1), run(turn, 2)])
    expect(both.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThanOrEqual(1)
    expect(await results(id)).toMatchObject([{ status: 'success' }])
  })
})

describe('a turn that ends while a tool runs', () => {
  it('stops the tool at once when it is cancelled', async () => {
    const { id, turn } = await createCall('wait', { ms: 20_000 })
    const running = run(turn, 1)
    await untilRuns(1)
    const actor = { ...ANYBODY, organizationId: turn.organizationId }
    await cancelTurns(deps, actor, toUuid(id))
    expect(await running).toEqual({ outcome: 'ended' })
    expect(lab.runs).toMatchObject([{ aborted: true }])
    expect(await results(id)).toMatchObject([{ status: 'cancelled' }])
  })

  it('gives the call a result when it fails, and runs nothing afterwards', async () => {
    const { id, turn } = await createCall('wait', { ms: 1 })
    await failTurn(deps, turn, 1, 'internal_error')
    const before = await listEvents(service.url, id)
    await run(turn, 1)
    expect(lab.runs).toEqual([])
    expect(await listEvents(service.url, id)).toEqual(before)
    expect(await results(id)).toMatchObject([{ status: 'cancelled' }])
  })
})

describe('an attempt that is aborted before its tool has begun', () => {
  it('runs no tool, even if the tool ignores the signal', async () => {
    const { id, turn } = await createCall('deaf')
    const stopped = AbortSignal.abort(new Error('the worker stops'))
    await expect(run(turn, 1, stopped)).rejects.toThrow('the worker stops')
    expect(lab.runs).toEqual([])
    expect(await results(id)).toEqual([])
  }, 5000)
})

describe('an attempt that is aborted after its call has its result', () => {
  it('waits for nothing more', async () => {
    const { turn } = await createCall('echo')
    const attempt = new AbortController()
    await run(turn, 1, attempt.signal)
    const timers = jest.spyOn(globalThis, 'setTimeout')
    attempt.abort(new Error('the worker stops'))
    expect(timers).not.toHaveBeenCalled()
    timers.mockRestore()
  })
})

describe('a call whose error is long', () => {
  it('has the beginning of it as its result', async () => {
    const { id, turn } = await createCall('fail', { text: `${'x'.repeat(4078)}😀${'x'.repeat(100_000)}` })
    await run(turn, 1)
    const error = `failed as asked: ${'x'.repeat(4078)}\ufffd`
    expect(await results(id)).toMatchObject([{ status: 'error', error }])
  })
})

describe('a call that cannot be run', () => {
  it('gets one error result, however often that is tried', async () => {
    const { id, turn } = await createCall('wait', { ms: 1 })
    await Promise.all([1, 2, 3].map(() => failTool(deps, turn, 1, 0)))
    expect(await results(id)).toMatchObject([{ status: 'error', error: expect.stringContaining('could not be run') }])
  })

  it('keeps the result that it has', async () => {
    const { id, turn } = await createCall('wait', { ms: 1 })
    await run(turn, 1)
    await failTool(deps, turn, 1, 0)
    expect(await results(id)).toMatchObject([{ status: 'success' }])
  })
})
