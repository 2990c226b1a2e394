import { startHostileServer } from '../support/hostile-mcp-server.ts'
import { call, createScriptedSession, type Json, listEvents, waitFor, waitUntilIdle } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { startService, type TestService } from '../support/service.ts'
import { type StatelessServer, startStatelessServer } from '../support/stateless-mcp-server.ts'
import { post, postAndAsk, submit } from '../support/turns.ts'

let service: TestService
let server: StatelessServer
beforeAll(async () => {
  server = await startStatelessServer()
  service = await startService({ environment: { ALLOW_PRIVATE_NETWORK: 'true' } })
})
afterAll(async () => {
  await service.stop()
  await server.stop()
})

const KEY = 'sk-this-is-a-key-of-a-test-0123456789'

let number = 0
/** Adds the server, and returns the configuration of an agent that uses it, with the path of the server. */
async function addServer() {
  const body = { name: `S${++number}`, url: server.url, api_key: KEY, headers: { 'X-Team': 'ours' } }
  const { id } = (await call(service.url, 'POST', '/v1/mcp-servers', body)).body
  const path = `/v1/mcp-servers/${id}`
  await waitFor(async () => (await call(service.url, 'GET', path)).body.tools_count !== null, 'its tools')
  return { path, prefix: `mcp_s${number}__`, agent: { capabilities: [{ ref: `mcp:${toUuid(id)}` }] } }
}

const stepsOf = (name: string) => [{ tool_calls: [{ id: 'one', name, arguments: { name: 'Ann' } }] }, { text: 'done' }]
const resultsOf = async (id: string): Promise<Json[]> =>
  (await listEvents(service.url, id)).filter(({ type }) => type === 'tool.completed').map(({ data }) => data)

describe('a turn with a server that is there', () => {
  it('calls its tool with the key and the headers', async () => {
    const { prefix, agent } = await addServer()
    const id = await createScriptedSession(service.url, stepsOf(`${prefix}echo`), agent)
    await post(service.url, id)
    await waitUntilIdle(service.url, id)
    expect(await resultsOf(id)).toMatchObject([{ status: 'success', tool_name: `${prefix}echo` }])
    const [called] = server.received.filter(({ method }) => method === 'tools/call')
    expect(called?.headers).toMatchObject({ authorization: `Bearer ${KEY}`, 'x-team': 'ours' })
    expect(JSON.stringify(await listEvents(service.url, id))).not.toContain(KEY)
  })

  it('waits for approval while the agent guards a tool that the server does not list any more', async () => {
    const { prefix, agent } = await addServer()
    const guard = { type: 'builtin', name: `${prefix}echo`, policy: 'requires_approval' }
    const id = await createScriptedSession(service.url, stepsOf(`${prefix}echo`), { ...agent, tools: [guard] })
    const { agent_id } = (await call(service.url, 'GET', `/v1/sessions/${id}`)).body
    // As if the tool had had another name when the guard was written.
    const renamed = [{ ...guard, name: `${prefix}say`, description: '', parameters: {} }]
    await service.platform.deps.db.agent.updateMany({ where: { id: toUuid(agent_id) }, data: { tools: renamed } })
    const { pending_tool_calls } = await postAndAsk(service.url, id)
    expect(pending_tool_calls).toMatchObject([{ name: `${prefix}echo`, kind: 'approval' }])
    expect((await submit(service.url, id, [{ tool_call_id: 'one', result: { approved: true } }])).status).toBe(200)
    await waitUntilIdle(service.url, id)
    expect(await resultsOf(id)).toMatchObject([{ status: 'success' }])
  })

  it('asks the client what the tool asks, and goes on with the answer', async () => {
    const { prefix, agent } = await addServer()
    const id = await createScriptedSession(service.url, stepsOf(`${prefix}ask`), agent)
    const { pending_tool_calls } = await postAndAsk(service.url, id)
    const asked = { name: 'mcp_elicitation', kind: 'client_tool' }
    expect(pending_tool_calls).toMatchObject([asked, asked])
    const answers = pending_tool_calls.map((one: Json) => {
      const isForm = one.arguments.requested_schema !== undefined
      const result = { action: 'accept', ...(isForm && { content: { name: 'Ann' } }) }
      return { tool_call_id: one.id, result }
    })
    expect((await submit(service.url, id, answers)).status).toBe(200)
    await waitUntilIdle(service.url, id)
    expect((await resultsOf(id)).at(-1)).toMatchObject({ status: 'success', tool_name: `${prefix}ask` })
  })

  it('has its instructions in the prompt, and shows clients the progress of calls, however much comes', async () => {
    const hostile = await startHostileServer()
    hostile.answers.initialize = ({ params, reply }) =>
      reply({
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'hostile', version: '1' },
        instructions: 'Always echo twice.',
      })
    hostile.answers['tools/call'] = ({ id, params, stream }) => {
      const send = stream()
      const { progressToken } = params._meta as Json
      for (let progress = 1; progress <= 1000; progress++) {
        send({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress, total: 1000 } })
      }
      send({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'done' }] } })
    }
    const added = await call(service.url, 'POST', '/v1/mcp-servers', { name: 'Flood', url: hostile.url })
    const path = `/v1/mcp-servers/${added.body.id}`
    await waitFor(async () => (await call(service.url, 'GET', path)).body.tools_count !== null, 'its tools')
    const agent = { capabilities: [{ ref: `mcp:${toUuid(added.body.id)}` }] }
    const session = await createScriptedSession(service.url, stepsOf('mcp_flood__echo'), agent)
    await post(service.url, session)
    const events = await waitUntilIdle(service.url, session)
    await hostile.stop()
    const reports = events.filter(({ type }) => type === 'tool.progress').map(({ data }) => data)
    expect(reports[0]).toMatchObject({ tool_call_id: 'one', progress: expect.any(Number), total: 1000 })
    expect(reports.length).toBeLessThan(50)
    expect(await resultsOf(session)).toMatchObject([{ status: 'success' }])
    const preview = (await call(service.url, 'POST', '/v1/agents/preview', { system_prompt: 'Help.', ...agent })).body
    expect(JSON.stringify(preview)).toContain('Always echo twice.')
  })

  it('goes on when the server has gone', async () => {
    const { path, prefix, agent } = await addServer()
    const id = await createScriptedSession(service.url, stepsOf(`${prefix}echo`), agent)
    const where = { id: toUuid(path.slice('/v1/mcp-servers/'.length)) }
    await service.platform.deps.db.mcpServer.updateMany({ where, data: { url: 'http://127.0.0.1:1/mcp', revision: 1 } })
    await post(service.url, id)
    await waitUntilIdle(service.url, id)
    expect(await resultsOf(id)).toMatchObject([{ status: 'error', error: expect.any(String) }])
    expect((await listEvents(service.url, id)).map(({ type }) => type)).toContain('turn.completed')
  })
})
