import { call, createScriptedSession, expectError, type Json, waitUntilIdle } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { giveTools } from '../support/mcp-tools.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { callsOf, cancel, clientTool, guardedTool, postAndAsk, submit } from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const add = (id: string) => ({ tool_calls: [{ id, name: 'add', arguments: { a: 6, b: 7 } }] })
const get = async (path: string): Promise<Json> => (await call(api, 'GET', path)).body
const keep = (id: string, approved_tools: string[]) => call(api, 'PATCH', `/v1/sessions/${id}`, { approved_tools })
const FOR_SESSION = { result: { approved: true, for: 'session' } }

it('runs a tool that is approved for the session without asking, there only, until the approval is withdrawn', async () => {
  const steps = [add('one'), add('two'), { text: 'Done.' }, add('three'), { text: 'Done.' }]
  const id = await createScriptedSession(api, steps, { capabilities: ['test_math'], tools: [guardedTool('add')] })
  const turn = await postAndAsk(api, id)
  expect((await submit(api, id, [{ tool_call_id: 'one', ...FOR_SESSION }])).status).toBe(200)
  await waitUntilIdle(api, id)
  expect(await get(`/v1/sessions/${id}/turns/${turn.id}`)).toMatchObject({ status: 'completed', iterations: 3 })
  const session = await get(`/v1/sessions/${id}`)
  expect(session.approved_tools).toEqual(['add'])
  const { data } = await get(`/v1/audit?target_id=${turn.id}`)
  expect(data).toMatchObject([{ action: 'turn.approve', details: { tool: 'add', for: 'session' } }])

  const other = (await call(api, 'POST', '/v1/sessions', { agent_id: session.agent_id })).body
  const fork = (await call(api, 'POST', `/v1/sessions/${id}/fork`, {})).body.session
  for (const { id: elsewhere, approved_tools } of [other, fork]) {
    expect(approved_tools).toEqual([])
    expect((await postAndAsk(api, elsewhere)).pending_tool_calls).toMatchObject([{ kind: 'approval' }])
    await cancel(api, elsewhere)
  }

  expect((await keep(id, ['add'])).body.approved_tools).toEqual(['add'])
  expectError(await keep(id, ['add', 'multiply']), 400, /^approved_tools\.1: .*only the approval of a call/)
  expect((await keep(id, [])).body.approved_tools).toEqual([])
  expectError(await keep(id, ['add']), 400, /^approved_tools\.0: /)
  const changes = (await get(`/v1/audit?target_id=${id}&action=session.update`)).data
  expect(changes.map(({ details }: Json) => details)).toEqual([
    { fields: ['approved_tools'], withdrawn: ['add'] },
    { fields: ['approved_tools'] },
  ])
  expect((await postAndAsk(api, id)).pending_tool_calls).toMatchObject([{ id: 'three', kind: 'approval' }])
  await cancel(api, id)
})

it('tells the model why a call was denied, which is for one call only', async () => {
  const guarded = { capabilities: ['test_math'], tools: [guardedTool('add')] }
  const id = await createScriptedSession(api, [add('one'), { text: 'Done.' }], guarded)
  await postAndAsk(api, id)
  const denial = { approved: false, reason: ' Not today. ' }
  const forSession = [{ tool_call_id: 'one', result: { ...denial, for: 'session' } }]
  expectError(await submit(api, id, forSession), 400, /^tool_results\.0\.result\.for: /)
  await submit(api, id, [{ tool_call_id: 'one', result: denial }])
  const results = (await waitUntilIdle(api, id)).filter(({ type }) => type === 'tool.completed')
  expect(results[0]?.data.error).toBe('The user did not approve this call: Not today.')
})

it('refuses to approve a tool for a session whose calls must all be approved', async () => {
  const name = 'mcp_held__search'
  const server = (
    await call(api, 'POST', '/v1/mcp-servers', { name: 'Held', url: 'https://mcp.example/mcp', tools_policy: 'ask' })
  ).body
  await giveTools(api, toUuid(server.id))
  const steps = [{ tool_calls: [{ id: 'held', name, arguments: {} }] }, { text: 'Done.' }]
  const id = await createScriptedSession(api, steps, { capabilities: [server.ref] })
  await postAndAsk(api, id)
  expectError(
    await submit(api, id, [{ tool_call_id: 'held', ...FOR_SESSION }]),
    400,
    /^tool_results\.0\.result\.for: must be absent, because each call of mcp_held__search/,
  )
  expect((await get(`/v1/sessions/${id}`)).approved_tools).toEqual([])
  await submit(api, id, [{ tool_call_id: 'held', result: { approved: false } }])
})

it('takes the answer of a client tool as data, whatever it says', async () => {
  const tools = [clientTool('decide')]
  const id = await createScriptedSession(api, [{ tool_calls: callsOf('decide') }, { text: 'Done.' }], { tools })
  await postAndAsk(api, id)
  expect((await submit(api, id, [{ tool_call_id: 'decide', ...FOR_SESSION }])).status).toBe(200)
  const results = (await waitUntilIdle(api, id)).filter(({ type }) => type === 'tool.completed')
  expect(JSON.parse(results[0]?.data.result[0].text)).toEqual(FOR_SESSION.result)
  expect((await get(`/v1/sessions/${id}`)).approved_tools).toEqual([])
})
