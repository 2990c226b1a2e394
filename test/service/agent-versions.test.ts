import { createScriptedAgent } from '../support/agents.ts'
import { type Answer, call, expectError, type Json, modelId, textMessage, unknownId, waitFor } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { clientTool, getTurn, MUTE, post, postAndAsk, submit, turnIdOf } from '../support/turns.ts'

let api: Organization
let echo: string
beforeAll(async () => {
  api = await newOrganization()
  echo = await modelId(api, 'llmsim-echo')
})

const create = async (more: object = {}): Promise<Json> => {
  const input = { name: 'Keeper', system_prompt: 'Keep.', default_model_id: echo, ...more }
  const { status, body } = await call(api, 'POST', '/v1/agents', input)
  expect({ status, body }).toMatchObject({ status: 201 })
  return body
}
const patch = (id: string, body: object): Promise<Answer> => call(api, 'PATCH', `/v1/agents/${id}`, body)
const get = (path: string): Promise<Answer> => call(api, 'GET', `/v1/${path}`)
const sessionOf = async (agent_id: string, more: object = {}): Promise<string> =>
  (await call(api, 'POST', '/v1/sessions', { agent_id, ...more })).body.id
const runTurn = async (session: string): Promise<Json> =>
  (await call(api, 'POST', `/v1/sessions/${session}/messages?wait=60`, textMessage('Go'))).body

describe('the versions of an agent', () => {
  it('are one for each change, with who, when and why, and never change', async () => {
    const { id, version } = await create({ version_note: 'The first.' })
    expect(version).toBe(1)
    expect((await patch(id, { system_prompt: 'Keep all.', version_note: 'All.' })).body.version).toBe(2)
    expect((await patch(id, { system_prompt: 'Keep all.', status: 'archived' })).body.version).toBe(2)
    expect(
      (await patch(id, { status: 'active', tags: ['a'], capabilities: [{ ref: 'test_math' }] })).body.version,
    ).toBe(3)
    const put = { name: 'Keeper', system_prompt: 'Keep all.', default_model_id: echo, tags: ['a'] }
    expect((await call(api, 'PUT', `/v1/agents/${id}`, put)).body.version).toBe(3)
    const { data } = (await get(`agents/${id}/versions`)).body
    expect(data.map(({ version, note }: Json) => [version, note])).toEqual([
      [3, null],
      [2, 'All.'],
      [1, 'The first.'],
    ])
    expect(data[0]).toMatchObject({ agent_id: id, name: 'Keeper', user_id: expect.any(String), api_key_id: null })
    expect((await get(`agents/${id}/versions?limit=1&before=3`)).body.data).toEqual([data[1]])
    expect((await get(`agents/${id}/versions/1`)).body).toMatchObject({ ...data[2], system_prompt: 'Keep.', tags: [] })
    expect((await get(`agents/${id}/versions/3/diff?from=1`)).body).toEqual({
      ...{ from: 1, to: 3 },
      changes: [
        { field: 'system_prompt', from: 'Keep.', to: 'Keep all.' },
        { field: 'tags', from: [], to: ['a'] },
        { field: 'capabilities', from: [], to: [expect.objectContaining({ ref: 'test_math' })] },
      ],
    })
  })

  it('are restored as a new one', async () => {
    const { id } = await create()
    await patch(id, { name: 'Other', limits: { max_model_calls: 3 } })
    const { status, body } = await call(api, 'POST', `/v1/agents/${id}/versions/1/restore`, {})
    expect({ status, body }).toMatchObject({ status: 200, body: { version: 3, name: 'Keeper', limits: {} } })
    expect((await get(`agents/${id}/versions/3`)).body.note).toBe('Version 1 restored')
    expect((await get(`agents/${id}/versions/3/diff?from=1`)).body.changes).toEqual([])
  })

  it('keep a change from overwriting another', async () => {
    const { id } = await create()
    const changes = await Promise.all([1, 2, 3].map((n) => patch(id, { description: `Change ${n}`, if_version: 1 })))
    expect(changes.map(({ status }) => status).sort()).toEqual([200, 409, 409])
    expectError(await patch(id, { name: 'Late', if_version: 1 }), 409, /^if_version: the agent has version 2;/)
    const put = { name: 'Put', system_prompt: 'Put.', if_version: 2 }
    expect((await call(api, 'PUT', `/v1/agents/${id}`, put)).body).toMatchObject({ version: 3, name: 'Put' })
    expectError(await call(api, 'PUT', `/v1/agents/${id}`, put), 409, /^if_version: the agent has version 3;/)
    expect((await get(`agents/${id}/versions`)).body.data).toHaveLength(3)
    const gone = unknownId('agent')
    expectError(await call(api, 'PUT', `/v1/agents/${gone}`, put), 409, `if_version: there is no agent ${gone}`)
    expectError(await call(api, 'POST', '/v1/agents', put), 400, /^if_version: needs the id/)
  })

  it.each([
    ['versions/0', 400, /^version: must be the number of a version/],
    ['versions/9999999999', 400, /^version: must be the number of a version/],
    ['versions/2', 404, /^Version not found/],
    ['versions/1/diff', 400, /^from: is required for version 1/],
    ['versions/1/diff?from=7', 404, /^Version not found/],
  ])('of a wrong number: %s is %i', async (path, status, sentence) => {
    const { id } = await create()
    expectError(await get(`agents/${id}/${path}`), status, sentence)
  })
})

describe('a turn', () => {
  it('runs the newest version when its message comes, and one throughout', async () => {
    const steps = [{ tool_calls: [{ name: 'ask', arguments: {} }] }, { text: 'Old.' }]
    const id = await createScriptedAgent(api, steps, { tools: [clientTool('ask')] })
    const session = await sessionOf(id)
    const turn = await postAndAsk(api, session)
    expect(turn.agent_version).toBe(1)
    await patch(id, { system_prompt: 'Changed.', tools: [], default_model_id: echo })
    await submit(api, session, [{ tool_call_id: turn.pending_tool_calls[0].id, result: 'x' }])
    await waitFor(async () => (await getTurn(api, session, turn.id)).status === 'completed', 'the turn')
    const { data } = (await get(`sessions/${session}/messages`)).body
    expect(data.at(-1).content).toEqual([{ type: 'text', text: 'Old.' }])
    const next = await runTurn(session)
    expect(next.turn.agent_version).toBe(2)
    expect(next.output.content[0].text).toContain('Go')
  })

  it('runs the version that its session names', async () => {
    const id = await createScriptedAgent(api, [{ text: 'First.' }])
    await patch(id, { default_model_id: echo, capabilities: [] })
    const session = await sessionOf(id, { agent_version: 1 })
    expect((await get(`sessions/${session}`)).body.agent_version).toBe(1)
    expect(await runTurn(session)).toMatchObject({
      turn: { agent_version: 1 },
      output: { content: [{ text: 'First.' }] },
    })
    expect((await call(api, 'PATCH', `/v1/sessions/${session}`, { agent_version: 0 })).body.agent_version).toBeNull()
    expect((await runTurn(session)).turn.agent_version).toBe(2)
    expectError(await call(api, 'PATCH', `/v1/sessions/${session}`, { agent_version: 9 }), 400, /has no version 9$/)
    expectError(await call(api, 'POST', '/v1/sessions', { agent_id: id, agent_version: 9 }), 400, /has no version 9$/)
    expectError(
      await call(api, 'POST', '/v1/sessions', { agent_version: 1 }),
      400,
      /^agent_version: needs an agent_id$/,
    )
  })

  it('that waits in the queue runs the version of its own message', async () => {
    const id = await createScriptedAgent(api, [MUTE])
    const session = await sessionOf(id)
    const first = turnIdOf(await post(api, session))
    await patch(id, { default_model_id: echo })
    const queued = turnIdOf(await post(api, session, 'Later'))
    expect((await getTurn(api, session, first)).agent_version).toBe(1)
    expect((await getTurn(api, session, queued)).agent_version).toBe(2)
  })
})
