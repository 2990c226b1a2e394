import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { examples } from '../../scripts/examples/agents.ts'
import { startEverythingServer } from '../support/everything-server.ts'
import { call, createSession, type Json } from '../support/http.ts'
import { startService, type TestService } from '../support/service.ts'

const run = promisify(execFile)

let service: TestService
let server: Awaited<ReturnType<typeof startEverythingServer>>
beforeAll(async () => {
  server = await startEverythingServer()
  service = await startService({ environment: { ALLOW_PRIVATE_NETWORK: 'true' } })
})
afterAll(async () => {
  await service.stop()
  await server.stop()
})

const seed = async (environment: Record<string, string> = {}): Promise<string> => {
  const env = { ...process.env, API_URL: service.url, MCP_URL: server.url, ...environment }
  const options = ['--disable-warning=ExperimentalWarning', 'scripts/seed-examples.ts']
  return (await run(process.execPath, options, { env })).stdout
}

const all = async (path: string): Promise<Json[]> => (await call(service.url, 'GET', path)).body.data
const everything = async () => ({
  agents: (await all('/v1/agents')).map(({ id, name }) => ({ id, name })),
  servers: (await all('/v1/mcp-servers')).map(({ id }) => id),
  schedules: (await all('/v1/durable/schedules')).map(({ id, enabled }) => ({ id, enabled })),
})

/** Has an agent answer the message that its example proposes. */
async function tryOut(agentId: string, text: string): Promise<{ turn: Json; output: Json; session: string }> {
  const session = await createSession(service.url, undefined, { agent_id: agentId })
  const message = { message: { content: [{ type: 'text', text }] } }
  const { body } = await call(service.url, 'POST', `/v1/sessions/${session}/messages?wait=30`, message)
  return { ...body, session }
}

it('makes three agents that answer without a provider, and changes nothing when it is run again', async () => {
  const printed = await seed()
  const made = await everything()
  expect([made.agents.length, made.servers.length, made.schedules.length]).toEqual([3, 1, 1])
  for (const { id, say, script, name } of examples) {
    expect(printed).toContain(`${name} (${id})`)
    const { turn, output, session } = await tryOut(id, say)
    expect([name, turn.status, output?.content]).toEqual([name, 'completed', [{ type: 'text', ...script.at(-1) }]])
    const results = await all(`/v1/sessions/${session}/events?types=tool.completed`)
    expect(results.map(({ data }) => data.success)).toEqual(script.slice(1).map(() => true))
  }
  await call(service.url, 'DELETE', `/v1/agents/${examples[0]?.id}`)
  await seed()
  expect(await everything()).toEqual(made)
})

it('has them use the default model once there is a provider, and a prompt without a script', async () => {
  const provider = { name: 'Ours', provider_type: 'openai', api_key: 'sk-none' }
  const { body } = await call(service.url, 'POST', '/v1/llm-providers', provider)
  const model = { model_id: 'gpt-5-mini', display_name: 'GPT-5 mini', is_default: true }
  const added = await call(service.url, 'POST', `/v1/llm-providers/${body.id}/models`, model)
  try {
    expect(await seed()).toContain('your default model GPT-5 mini')
    for (const { id, prompt } of examples) {
      const agent = (await call(service.url, 'GET', `/v1/agents/${id}`)).body
      expect(agent).toMatchObject({ system_prompt: prompt, default_model_id: null })
    }
    await call(service.url, 'PATCH', `/v1/llm-models/${added.body.id}`, { is_default: false })
    expect(await seed()).toContain('the model GPT-5 mini')
    const agent = (await call(service.url, 'GET', `/v1/agents/${examples[0]?.id}`)).body
    expect(agent.default_model_id).toBe(added.body.id)
  } finally {
    await call(service.url, 'DELETE', `/v1/llm-providers/${body.id}`)
  }
})

it.each([
  ['where a server may not be called', { MCP_URL: 'nowhere' }, /url/],
  ['where nothing answers', { API_URL: 'http://127.0.0.1:9' }, /^http:\/\/127\.0\.0\.1:9 was not reached; API_URL /],
])('says why it cannot do all of it %s', async (_when, environment, sentence) => {
  const [known] = await all('/v1/mcp-servers')
  await call(service.url, 'DELETE', `/v1/mcp-servers/${known?.id}`)
  const printed = await seed(environment).catch((error: Json) => error.stderr)
  expect(printed).toMatch(sentence)
})
