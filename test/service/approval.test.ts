import { readFile } from 'node:fs/promises'
import { newUuid, toId } from '../../domain/kit/ids.ts'
import { call, createScriptedSession, expectError, type Json, waitUntilIdle } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import type { LabRun } from '../support/lab.ts'
import { giveTools } from '../support/mcp-tools.ts'
import { expectSoundRecord } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import {
  cancel,
  clientTool,
  getTurn,
  guardedTool,
  post,
  postAndAsk,
  statusOf,
  submit,
  waitForEvent,
} from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

let number = 0
/** Returns a unique call id, because the lab remembers the runs of all tests. */
const uniqueId = (name: string): string => `${name}-${number++}`
const runsOf = async (callId: string): Promise<LabRun[]> => (await api.labRuns()).filter((run) => run.callId === callId)
const countRuns = async (callId: string): Promise<number> => (await runsOf(callId)).length

const createGuardedSession = (calls: object[], guarded: string[]) =>
  createScriptedSession(api, [{ tool_calls: calls }, { text: 'done' }], {
    capabilities: [{ ref: 'lab' }],
    tools: [...guarded.map(guardedTool), clientTool('ask')],
  })

async function finish(id: string): Promise<Json[]> {
  const events = await waitUntilIdle(api, id)
  expectSoundRecord(events)
  expect(events.at(-2)).toMatchObject({ type: 'turn.completed', data: { iterations: 2 } })
  return events
}

const acting = (events: Json[]): Json[] => events.filter((event) => /^(act|tool)\./.test(event.type))
const typesOf = (events: Json[]): string[] => acting(events).map((event) => event.type)
const resultOf = (events: Json[], callId: string): Json =>
  events.find((event) => event.type === 'tool.completed' && event.data.tool_call_id === callId).data

const guard = (name: string) => ({ type: 'builtin', name, policy: 'requires_approval' })

const YES = { result: { approved: true } }
const NO = { result: { approved: false } }

describe('an approval that is asked for while the model thinks', () => {
  it('holds the call, which then does not run', async () => {
    const callId = uniqueId('late')
    const echo = { delay_ms: 4000, tool_calls: [{ id: callId, name: 'echo', arguments: { text: 'hi' } }] }
    const id = await createScriptedSession(api, [echo, { text: 'done' }], { capabilities: [{ ref: 'lab' }] })
    await post(api, id)
    // The step has read its tools by then.
    await waitForEvent(api, id, 'output.message.started')
    const tools = [guardedTool('echo')]
    expect((await call(api, 'PATCH', `/v1/sessions/${id}`, { tools })).status).toBe(200)
    const result = resultOf(await finish(id), callId)
    expect(result).toMatchObject({ status: 'error', error: expect.stringMatching(/waits for approval/) })
    expect(await runsOf(callId)).toEqual([])
  })
})

describe('a call that waits for approval', () => {
  it('runs once when it is approved', async () => {
    const callId = uniqueId('yes')
    const id = await createGuardedSession([{ id: callId, name: 'echo', arguments: { text: 'hi' } }], ['echo'])
    const { pending_tool_calls } = await postAndAsk(api, id)
    expect(pending_tool_calls).toEqual([{ id: callId, name: 'echo', arguments: { text: 'hi' }, kind: 'approval' }])
    expect(await runsOf(callId)).toEqual([])
    const answer = await submit(api, id, [{ tool_call_id: callId, ...YES }])
    expect(answer.body).toEqual({ accepted: 1, status: 'active' })
    const events = await finish(id)
    expect(typesOf(events)).toEqual([
      ...['act.started', 'tool.call_requested', 'tool.started', 'tool.completed', 'act.completed'],
    ])
    expect(acting(events)[0].data.tool_calls).toEqual([
      { id: callId, name: 'echo', display_name: 'The echo tool', policy: 'requires_approval' },
    ])
    expect(resultOf(events, callId)).toMatchObject({ status: 'success', tool_name: 'echo' })
    expect(JSON.parse(resultOf(events, callId).result[0].text)).toEqual({ text: 'hi' })
    expect(await runsOf(callId)).toEqual([expect.objectContaining({ mayHaveRun: false, args: { text: 'hi' } })])
  })

  it('runs even if its tool must not run twice', async () => {
    const callId = uniqueId('once')
    const id = await createGuardedSession([{ id: callId, name: 'once', arguments: {} }], ['once'])
    await postAndAsk(api, id)
    await submit(api, id, [{ tool_call_id: callId, ...YES }])
    expect(resultOf(await finish(id), callId)).toMatchObject({ status: 'success' })
    expect(await runsOf(callId)).toHaveLength(1)
  })

  it.each<[string, { result?: object; error?: string }]>([
    ['is denied', NO],
    ['gets an error', { error: 'no user there' }],
    ['gets an error without words', { error: '' }],
    ['gets an error beside its approval', { ...YES, error: 'no user there' }],
  ])('does not run when it %s', async (_name, answer) => {
    const callId = uniqueId('no')
    const id = await createGuardedSession([{ id: callId, name: 'echo', arguments: {} }], ['echo'])
    await postAndAsk(api, id)
    expect((await submit(api, id, [{ tool_call_id: callId, ...answer }])).status).toBe(200)
    const events = await finish(id)
    expect(typesOf(events)).toEqual(['act.started', 'tool.call_requested', 'tool.completed', 'act.completed'])
    expect(resultOf(events, callId)).toMatchObject({ status: 'error', success: false, result: null })
    expect(resultOf(events, callId).error).toMatch(answer.error || /^The user did not approve|gave no reason/)
    expect(await runsOf(callId)).toEqual([])
  })

  describe('and gets a result that is not a decision', () => {
    // Refused requests change nothing, so one turn waits through all of them and then continues.
    const callId = uniqueId('odd')
    let id: string
    beforeAll(async () => {
      id = await createGuardedSession([{ id: callId, name: 'echo', arguments: {} }], ['echo'])
      await postAndAsk(api, id)
    })
    afterAll(async () => {
      await submit(api, id, [{ tool_call_id: callId, ...NO }])
      await finish(id)
    })

    it.each([
      ['nothing', {}],
      ['null', { result: null }],
      ['true', { result: true }],
      ['a text', { result: 'yes' }],
      ['a list', { result: [true] }],
      ['another field', { result: { approve: true } }],
      ['a text for a boolean', { result: { approved: 'true' } }],
      ['1 for true', { result: { approved: 1 } }],
    ])('keeps waiting: %s', async (_name, answer) => {
      const sentence = /^tool_results\.0\.result: .*approved/
      expectError(await submit(api, id, [{ tool_call_id: callId, ...answer }]), 400, sentence)
      expect(await statusOf(api, id)).toBe('waitingfortoolresults')
      expect(await runsOf(callId)).toEqual([])
    })
  })

  it('cannot be approved, then denied', async () => {
    const [first, second] = [uniqueId('first'), uniqueId('second')]
    const calls = [first, second].map((callId) => ({ id: callId, name: 'echo', arguments: {} }))
    const id = await createGuardedSession(calls, ['echo'])
    const turn = await postAndAsk(api, id)
    await submit(api, id, [{ tool_call_id: first, ...YES }])
    expect((await getTurn(api, id, turn.id)).pending_tool_calls.map((call: Json) => call.id)).toEqual([second])
    expectError(await submit(api, id, [{ tool_call_id: first, ...NO }]), 400, `${first} is not pending`)
    expect(await runsOf(first)).toEqual([])
    await submit(api, id, [{ tool_call_id: second, ...NO }])
    const events = await finish(id)
    expect(resultOf(events, first)).toMatchObject({ status: 'success' })
    expect([await countRuns(first), await countRuns(second)]).toEqual([1, 0])
  })

  it('is requested together with client calls, after the service’s own tools have run', async () => {
    const [free, guarded, mine] = [uniqueId('free'), uniqueId('guarded'), uniqueId('mine')]
    const calls = [
      { id: guarded, name: 'once', arguments: {} },
      { id: mine, name: 'ask', arguments: {} },
      { id: free, name: 'echo', arguments: {} },
    ]
    const id = await createGuardedSession(calls, ['once'])
    const { pending_tool_calls } = await postAndAsk(api, id)
    expect(pending_tool_calls.map((call: Json) => [call.id, call.kind])).toEqual([
      [guarded, 'approval'],
      [mine, 'client_tool'],
    ])
    expect([await countRuns(free), await countRuns(guarded)]).toEqual([1, 0])
    await submit(api, id, [
      { tool_call_id: mine, result: { approved: 'is a result like any other here' } },
      { tool_call_id: guarded, ...YES },
    ])
    const events = await finish(id)
    expect(typesOf(events)).toEqual([
      ...['act.started', 'tool.started', 'tool.completed', 'tool.call_requested'],
      ...['tool.completed', 'tool.started', 'tool.completed', 'act.completed'],
    ])
    expect(acting(events)[0].data.tool_calls.map((call: Json) => call.policy)).toEqual([
      ...['requires_approval', 'client_side', 'auto'],
    ])
    expect(acting(events).at(-1).data).toMatchObject({ success_count: 3, error_count: 0 })
    expect([await countRuns(free), await countRuns(guarded)]).toEqual([1, 1])
  })

  it('never runs if the turn is cancelled after the approval, while another call still waits', async () => {
    const [approved, waiting] = [uniqueId('approved'), uniqueId('waiting')]
    const calls = [approved, waiting].map((callId) => ({ id: callId, name: 'echo', arguments: {} }))
    const id = await createGuardedSession(calls, ['echo'])
    await postAndAsk(api, id)
    await submit(api, id, [{ tool_call_id: approved, ...YES }])
    await cancel(api, id)
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    expect(typesOf(events).slice(-3)).toEqual(['tool.started', 'tool.completed', 'tool.completed'])
    expect([resultOf(events, approved).status, resultOf(events, waiting).status]).toEqual(['cancelled', 'cancelled'])
    expect([await countRuns(approved), await countRuns(waiting)]).toEqual([0, 0])
  })

  it('is not requested for invalid arguments', async () => {
    const callId = uniqueId('wrong')
    const id = await createGuardedSession([{ id: callId, name: 'echo', arguments: { text: 5 } }], ['echo'])
    await post(api, id)
    const events = await finish(id)
    expect(typesOf(events)).toEqual(['act.started', 'tool.started', 'tool.completed', 'act.completed'])
    expect(resultOf(events, callId).error).toContain('text')
  })
})

describe('an approval of a tool that the agent has not', () => {
  const BASE = { name: 'A', system_prompt: 'Help.', capabilities: ['session_file_system'] }
  const GOOD = { ...BASE, tools: [guard('delete_file')] }
  const BAD = { ...BASE, tools: [guard('delete_files')] }
  const refusal = /^tools\.0\.name: the \w+ has no tool "delete_files"; its tools are: read_file, .*delete_file/
  const create = async (): Promise<string> => (await call(api, 'POST', '/v1/agents', GOOD)).body.id

  it('is refused wherever tools are written, with the tools that there are', async () => {
    const id = await create()
    const document = `---\n${JSON.stringify(BAD)}\n---\n`
    const session = { capabilities: BASE.capabilities, tools: BAD.tools }
    for (const answer of [
      await call(api, 'POST', '/v1/agents', BAD),
      await call(api, 'PUT', `/v1/agents/${id}`, BAD),
      await call(api, 'PUT', `/v1/agents/${toId('agent', newUuid())}`, BAD),
      await call(api, 'PATCH', `/v1/agents/${id}`, { tools: BAD.tools }),
      await call(api, 'POST', '/v1/agents/import', document, { 'Content-Type': 'text/markdown' }),
      await call(api, 'POST', '/v1/agents/preview', BAD),
      await call(api, 'POST', '/v1/sessions', session),
      await call(api, 'POST', '/v1/sessions', { agent_id: id, tools: BAD.tools }),
    ]) {
      expectError(answer, 400, refusal)
      expect(answer.body.field).toBe('tools.0.name')
    }
    expect((await call(api, 'POST', '/v1/sessions', { agent_id: id, tools: GOOD.tools })).status).toBe(201)
  })

  it('is refused when the capability goes', async () => {
    const id = await create()
    const lost = /^tools\.0\.name: the agent has no tool "delete_file"/
    expectError(await call(api, 'PATCH', `/v1/agents/${id}`, { capabilities: ['noop'] }), 400, lost)
    expectError(await call(api, 'PUT', `/v1/agents/${id}`, { ...GOOD, capabilities: ['noop'] }), 400, lost)
    expect((await call(api, 'PATCH', `/v1/agents/${id}`, { capabilities: ['noop'], tools: [] })).status).toBe(200)
  })

  it('stays with an agent of an earlier release, and is not copied', async () => {
    const id = await create()
    const old = { ...guard('delete_files'), description: 'd', parameters: { type: 'object' } }
    const set = 'UPDATE agents SET tools = $2 WHERE id = $1'
    await api.query(set, [toUuid(id), JSON.stringify([old, clientTool('read_file')])])
    const { body } = await call(api, 'GET', `/v1/agents/${id}`)
    expect(body.tools).toEqual([old, clientTool('read_file')])
    for (const [method, changes] of [
      ['PATCH', { name: 'B' }],
      ['PATCH', { tools: body.tools }],
      ['PUT', body],
    ] as const)
      expect((await call(api, method, `/v1/agents/${id}`, changes)).status).toBe(200)
    expectError(await call(api, 'PATCH', `/v1/agents/${id}`, { tools: [guard('rm')] }), 400, /no tool "rm"/)
    expectError(await call(api, 'POST', `/v1/agents/${id}/copy`), 400, refusal)
  })

  it('is taken where an MCP server may have it: its list is not known, or it is gone', async () => {
    const made = await call(api, 'POST', '/v1/mcp-servers', { name: 'Later', url: 'https://mcp.example/mcp' })
    const { id, ref } = made.body
    const agent = (name: string) => ({ ...BASE, capabilities: [ref], tools: [guard(name)] })
    const unknown = await call(api, 'POST', '/v1/agents', agent('mcp_later__anything'))
    expect(unknown.status).toBe(201)
    expectError(
      await call(api, 'POST', '/v1/agents', agent('mcp_latre__anything')),
      400,
      /no tool "mcp_latre__anything"/,
    )
    await giveTools(api, toUuid(id))
    const { body } = await call(api, 'POST', '/v1/agents/preview', agent('mcp_later__search'))
    expect(body.tools).toMatchObject([{ name: 'mcp_later__search', policy: 'requires_approval' }])
    expectError(
      await call(api, 'POST', '/v1/agents', agent('mcp_later__anything')),
      400,
      /its tools are: mcp_later__search$/,
    )
    await call(api, 'DELETE', `/v1/mcp-servers/${id}`)
    expect((await call(api, 'POST', `/v1/agents/${unknown.body.id}/copy`)).status).toBe(201)
  })
})

describe("a client's tool and a capability's of its name", () => {
  const mine = clientTool('multiply')
  const steps = [{ tool_calls: [{ id: 'one', name: 'multiply', arguments: { a: 2, b: 3 } }] }, { text: 'done' }]
  const math = { capabilities: ['test_math'] }

  it('are refused where the session brings the capability and the agent the tool', async () => {
    const agent = { name: 'A', system_prompt: 'Help.', tools: [mine] }
    const { id: agent_id } = (await call(api, 'POST', '/v1/agents', agent)).body
    const refusal = /^capabilities: test_math has a tool "multiply", .*"replaces": true/
    const refused = await call(api, 'POST', '/v1/sessions', { agent_id, ...math })
    expectError(refused, 400, refusal)
    expect(refused.body.field).toBe('capabilities')
    const { id } = (await call(api, 'POST', '/v1/sessions', { agent_id })).body
    expectError(await call(api, 'PATCH', `/v1/sessions/${id}`, math), 400, refusal)
    const replaced = { ...math, tools: [{ ...mine, replaces: true }] }
    expect((await call(api, 'PATCH', `/v1/sessions/${id}`, replaced)).status).toBe(200)
    expect((await call(api, 'PATCH', `/v1/sessions/${id}`, { ...math, title: 'B' })).status).toBe(200)
    expect((await call(api, 'POST', '/v1/sessions', { agent_id, ...replaced })).status).toBe(201)
  })

  it.each([
    [{}, 'approval'],
    [{ replaces: true }, 'client_tool'],
  ])("are the capability's when it comes later, unless the tool replaces it: %j", async (more, kind) => {
    const id = await createScriptedSession(api, steps, {}, { tools: [{ ...mine, ...more }] })
    const { agent_id } = (await call(api, 'GET', `/v1/sessions/${id}`)).body
    const changes = { ...math, tools: [guard('multiply')] }
    expect((await call(api, 'PATCH', `/v1/agents/${agent_id}`, changes)).status).toBe(200)
    expect((await postAndAsk(api, id)).pending_tool_calls).toMatchObject([{ name: 'multiply', kind }])
    await submit(api, id, [{ tool_call_id: 'one', ...YES }])
    await waitUntilIdle(api, id)
  })

  it('of an earlier release replace as they did', async () => {
    const tools = [clientTool('fly'), mine, { ...clientTool('add'), replaces: false }]
    const { id } = (await call(api, 'POST', '/v1/agents', { name: 'A', system_prompt: 'Help.' })).body
    await api.query('UPDATE agents SET tools = $2 WHERE id = $1', [toUuid(id), JSON.stringify(tools)])
    const folder = 'prisma/migrations/20261124211000_tools_that_replace'
    await api.query(await readFile(`${folder}/migration.sql`, 'utf8'))
    const { body } = await call(api, 'GET', `/v1/agents/${id}`)
    expect(body.tools).toEqual(tools.map((tool) => (tool === mine ? { ...mine, replaces: true } : tool)))
  })
})
