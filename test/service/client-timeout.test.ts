import { createScriptedSession, expectError, type Json, waitUntilIdle } from '../support/http.ts'
import { createLab } from '../support/lab.ts'
import { expectSoundRecord, typesOf } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { callsOf, clientTool, getTurn, guardedTool, postAndAsk, submit } from '../support/turns.ts'

const lab = createLab()
let service: TestService
let url: string
beforeAll(async () => {
  service = await startService({ environment: { CLIENT_TOOL_TIMEOUT: '6' }, capabilities: [lab.capability] })
  url = service.url
})
afterAll(() => service.stop())

const NAMES = ['a', 'b']
const TIMED_OUT = { status: 'timeout', success: false, result: null, error: expect.stringContaining('within 6 s') }

const createClientSession = () =>
  createScriptedSession(url, [{ tool_calls: callsOf(...NAMES) }, { text: 'done' }], {
    tools: NAMES.map((name) => clientTool(name)),
  })

async function finish(id: string): Promise<Json[]> {
  const events = await waitUntilIdle(url, id)
  expectSoundRecord(events)
  expect(events.at(-2)).toMatchObject({ type: 'turn.completed', data: { iterations: 2 } })
  return events
}

const completed = (events: Json[]): Json[] =>
  events.filter((event) => event.type === 'tool.completed').map((event) => event.data)

describe('a client that does not answer in time', () => {
  it.concurrent('has each missing result made an error, and the turn goes on', async () => {
    const id = await createClientSession()
    const { id: turnId } = await postAndAsk(url, id)
    const events = await finish(id)
    expect(completed(events)).toEqual(
      NAMES.map((tool_name) => expect.objectContaining({ tool_call_id: tool_name, tool_name, ...TIMED_OUT })),
    )
    const timeOf = (type: string): number => Date.parse(events.find((event) => event.type === type).ts)
    const waitedMs = timeOf('tool.completed') - timeOf('tool.call_requested')
    expect(waitedMs).toBeGreaterThanOrEqual(5900)
    expect(await getTurn(url, id, turnId)).toMatchObject({ status: 'completed', pending_tool_calls: [] })
    expectError(await submit(url, id, [{ tool_call_id: 'a', result: 1 }]), 409)
  })

  it.concurrent('has a tool fail that asks its user', async () => {
    const steps = [{ tool_calls: callsOf('elicit') }, { text: 'done' }]
    const id = await createScriptedSession(url, steps, { capabilities: [{ ref: 'lab' }] })
    const { pending_tool_calls } = await postAndAsk(url, id)
    expect(completed(await finish(id))).toEqual([
      expect.objectContaining({ tool_call_id: pending_tool_calls[0].id, ...TIMED_OUT }),
      expect.objectContaining({ tool_call_id: 'elicit', ...TIMED_OUT }),
    ])
  })

  it.concurrent('keeps the results that it did give', async () => {
    const id = await createClientSession()
    await postAndAsk(url, id)
    await submit(url, id, [{ tool_call_id: 'b', result: 'in time' }])
    const events = await finish(id)
    expect(completed(events)).toEqual([
      expect.objectContaining({ tool_call_id: 'b', status: 'success' }),
      expect.objectContaining({ tool_call_id: 'a', ...TIMED_OUT }),
    ])
    expect(events.find((event) => event.type === 'act.completed').data).toMatchObject({
      success_count: 1,
      error_count: 1,
    })
  })

  it.concurrent('has only the calls run that it approved', async () => {
    const calls = ['approved', 'forgotten'].map((id) => ({ id, name: 'echo', arguments: {} }))
    const tools = [guardedTool('echo')]
    const agent = { capabilities: [{ ref: 'lab' }], tools }
    const id = await createScriptedSession(url, [{ tool_calls: calls }, { text: 'done' }], agent)
    await postAndAsk(url, id)
    await submit(url, id, [{ tool_call_id: 'approved', result: { approved: true } }])
    const events = await finish(id)
    expect(completed(events)).toEqual([
      expect.objectContaining({ tool_call_id: 'forgotten', ...TIMED_OUT }),
      expect.objectContaining({ tool_call_id: 'approved', status: 'success' }),
    ])
    expect(lab.runs.filter(({ tool }) => tool === 'echo').map((run) => run.callId)).toEqual(['approved'])
  })

  it.concurrent('has the full time again at each step that asks it', async () => {
    const again = [{ id: 'again', name: 'a', arguments: {} }]
    const steps = [{ tool_calls: callsOf('a') }, { tool_calls: again }, { text: 'done' }]
    const id = await createScriptedSession(url, steps, { tools: [clientTool('a')] })
    await postAndAsk(url, id)
    const events = await waitUntilIdle(url, id)
    expectSoundRecord(events)
    expect(typesOf(events).filter((type) => type === 'tool.call_requested')).toHaveLength(2)
    const [, asked] = events.filter((event) => event.type === 'tool.call_requested')
    const [, given] = events.filter((event) => event.type === 'tool.completed')
    // The wait begins a moment before its request is recorded, which takes longer on a loaded machine.
    expect(Date.parse(given.ts) - Date.parse(asked.ts)).toBeGreaterThanOrEqual(5500)
  })
})
