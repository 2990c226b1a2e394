/**
 * npm run seed:examples: creates three agents worth trying in a service that runs, or brings them up to date. API_URL is its
 * address (http://localhost:9300), API_TOKEN an access token or API key of an administrator where users sign in, and
 * MCP_URL the address of an MCP server. Prints what to try.
 */
import { print, printError } from '../dev/terminal.ts'
import { type ExampleAgent, examples, SCRIPTED_MODEL } from './examples/agents.ts'
import { type Api, connect, Refused } from './examples/api.ts'

const SERVER_NAME = 'Everything'
const SERVER_URL = 'http://127.0.0.1:3001/mcp'
const SCHEDULE = { name: 'Morning report', cron_expression: '0 8 * * 1-5', timezone: 'UTC', max_concurrent: 1 }

type ListedModel = { id: string; display_name: string; provider_type: string; status: string; is_default: boolean }

const { API_URL = 'http://localhost:9300', API_TOKEN, MCP_URL } = process.env

async function main() {
  const api = connect(API_URL, API_TOKEN)
  const models = await api.list<ListedModel>('/v1/llm-models')
  const real = models.filter(({ provider_type, status }) => provider_type !== 'llmsim' && status === 'active')
  const model = real.find(({ is_default }) => is_default) ?? real[0]
  const server = await addServer(api, MCP_URL)
  print(
    model
      ? `The agents use ${model.is_default ? 'your default model' : 'the model'} ${model.display_name}.`
      : 'There is no provider yet, so a simulated model plays a script of one answer in each session.',
  )
  for (const example of examples) {
    if (example.needsServer && server === undefined) continue
    await addAgent(api, example, { model, server })
    print(`\n${example.name} (${example.id}): ${example.description}\n${tryIt(API_URL, example)}`)
  }
}

async function addAgent(
  api: Api,
  { id, name, description, prompt, capabilities, script, needsServer, isScheduled, say }: ExampleAgent,
  { model, server }: { model: ListedModel | undefined; server: string | undefined },
): Promise<void> {
  const ofServer = needsServer && server !== undefined ? [{ ref: server }] : []
  await api.call('PUT', `/v1/agents/${id}`, {
    name,
    description,
    tags: ['example'],
    capabilities: [...capabilities.map((ref) => ({ ref })), ...ofServer],
    ...(model
      ? { system_prompt: prompt, default_model_id: model.is_default ? null : model.id }
      : {
          system_prompt: `${prompt}\n\n\`\`\`llmsim\n${JSON.stringify(script, null, 2)}\n\`\`\``,
          default_model_id: SCRIPTED_MODEL,
        }),
  })
  await api.call('PATCH', `/v1/agents/${id}`, { status: 'active' })
  if (isScheduled) await addSchedule(api, { agent_id: id, message: say })
}

/**
 * Returns the ref of the MCP server's capability. A server that is there is changed only for an address that was given.
 * Undefined when the service may not call the server.
 */
async function addServer(api: Api, url: string | undefined): Promise<string | undefined> {
  const servers = await api.list<{ id: string; name: string; url: string }>('/v1/mcp-servers')
  try {
    const known = servers.find(({ name }) => name === SERVER_NAME)
    if (known && url !== undefined && known.url !== url) await api.call('PATCH', `/v1/mcp-servers/${known.id}`, { url })
    const server = { name: SERVER_NAME, url: url ?? SERVER_URL }
    const { id } = known ?? (await api.call<{ id: string }>('POST', '/v1/mcp-servers', server))
    return id.replace(/^mcp_(.{8})(.{4})(.{4})(.{4})/, 'mcp:$1-$2-$3-$4-')
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    print(`No agent with an MCP server: ${error.message}\n`)
    return undefined
  }
}

async function addSchedule(api: Api, input: { agent_id: string; message: string }): Promise<void> {
  const schedules = await api.list<{ name: string }>('/v1/durable/schedules')
  if (schedules.some(({ name }) => name === SCHEDULE.name)) return
  const target = { type: 'workflow', name: 'session_message', input }
  await api.call('POST', '/v1/durable/schedules', { ...SCHEDULE, target })
}

const authorization = API_TOKEN ? ` -H "authorization: Bearer $API_TOKEN"` : ''

const tryIt = (url: string, { id, say }: ExampleAgent): string => `
  SESSION=$(curl -s ${url}/v1/sessions${authorization} -H 'content-type: application/json' -d '{"agent_id":"${id}"}' | grep -o 'session_[0-9a-f]*' | head -1)
  curl -s "${url}/v1/sessions/$SESSION/messages?wait=60"${authorization} -H 'content-type: application/json' \\
    -d '{"message":{"content":[{"type":"text","text":"${say}"}]}}'`

try {
  await main()
} catch (error) {
  const words = `${API_URL} was not reached; API_URL is the address of the service (${error})`
  printError(error instanceof Refused ? `Refused: ${error.message}` : words)
  process.exitCode = 1
}
