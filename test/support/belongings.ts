import { SkillId } from '../../contract/kit/ids.ts'
import { newUuid, toId } from '../../domain/kit/ids.ts'
import { addOwnOrganization, createApiKey, registerUser } from './auth.ts'
import { type Answer, call, type Json, modelId, waitFor } from './http.ts'
import { toUuid } from './ids.ts'
import { formOf, PIXEL } from './pictures.ts'
import { callsOf, clientTool } from './turns.ts'
import { skillMd, zipOf } from './zip.ts'

/** Path of a file in the session of each owner. */
export const FILE = '/notes/a file.txt'

/** Ids and values of an organization that a request may contain. */
export type Ids = {
  organization: string
  user: string
  email: string
  /** Text contained in everything written for the organization. */
  mark: string
  agent: string
  /** Agents whose ids another caller may try to write to. */
  chosenAgent: string
  importedAgent: string
  /** Session with a finished turn, and that turn and one of its events. */
  session: string
  turn: string
  event: string
  /** Session whose turn waits for its client, and the tool call it waits for. */
  waitingSession: string
  waitingTurn: string
  toolCall: string
  deletedSession: string
  /** Name of a database of the session, in which a table has the mark. */
  database: string
  apiKey: string
  /** LLM provider, and a model of it. */
  llmProvider: string
  llmModel: string
  mcpServer: string
  /** Ref of the server's capability. */
  serverRef: string
  invitation: string
  idempotencyKey: string
  image: string
  skill: string
  budget: string
  /** Ref of the skill as a capability. */
  skillRef: string
  /** Schedule that is disabled, and its execution, which has ended. */
  schedule: string
  execution: string
  /** Webhook, and its test, which has failed. */
  webhook: string
  delivery: string
  /** Name of a task queue. */
  taskQueue: string
}

type Headers = Record<string, string>
/**
 * Owner of an organization. `headers` act in it, `token` acts in the default organization, and `keyHeaders` use an API
 * key.
 */
export type Owner = { ids: Ids; headers: Headers; token: Headers; keyHeaders: Headers }

/** Returns well-formed ids that do not exist. */
export const unknownIds = (): Ids => ({
  organization: toId('org', newUuid()),
  user: newUuid(),
  email: `${newUuid()}@example.com`,
  mark: `mark-${newUuid()}`,
  agent: toId('agent', newUuid()),
  chosenAgent: toId('agent', newUuid()),
  importedAgent: toId('agent', newUuid()),
  session: toId('session', newUuid()),
  turn: toId('turn', newUuid()),
  event: toId('event', newUuid()),
  waitingSession: toId('session', newUuid()),
  waitingTurn: toId('turn', newUuid()),
  toolCall: `call-${newUuid()}`,
  deletedSession: toId('session', newUuid()),
  database: `notes_${newUuid().replaceAll('-', '')}`,
  apiKey: newUuid(),
  llmProvider: toId('provider', newUuid()),
  llmModel: toId('model', newUuid()),
  mcpServer: toId('mcp', newUuid()),
  serverRef: `mcp:${newUuid()}`,
  invitation: newUuid(),
  idempotencyKey: `key-${newUuid()}`,
  image: newUuid(),
  skill: toId('skill', newUuid()),
  budget: toId('budget', newUuid()),
  skillRef: `skill:${newUuid()}`,
  schedule: newUuid(),
  execution: newUuid(),
  webhook: toId('webhook', newUuid()),
  delivery: toId('delivery', newUuid()),
  taskQueue: `queue-${newUuid()}`,
})

type Ask = (method: string, path: string, body?: unknown, more?: Headers) => Promise<Json>

/** Creates a user who owns an organization with one resource of each kind. */
export async function createOwner(url: string): Promise<Owner> {
  const user = await registerUser(url)
  const { mark, toolCall, database, idempotencyKey } = unknownIds()
  const { id: organization, headers } = await addOwnOrganization(url, user, `Own ${mark}`)
  const ask: Ask = async (method, path, body, more) =>
    expectDone(await call(url, method, path, body, { ...headers, ...more }))
  const scripts = await modelId(url, 'llmsim-script', headers)
  const [chosenAgent, importedAgent] = [await addAgent(ask, scripts, mark), await addAgent(ask, scripts, mark)]
  const finished = await addFinished(ask, scripts, { mark, database, idempotencyKey })
  const waiting = await addWaiting(ask, scripts, mark, toolCall)
  const { id: deletedSession } = await ask('POST', '/v1/sessions', { title: mark })
  await ask('DELETE', `/v1/sessions/${deletedSession}`)
  const apiKey = await createApiKey(url, headers, { name: mark })
  const { id: invitation } = await ask('POST', `/v1/orgs/${organization}/invitations`, { role: 'member' })
  const { id: image } = await ask('POST', '/v1/images', formOf(PIXEL, `${mark}.png`))
  const skill = await addSkill(ask, mark)
  const models = await addModel(ask, mark)
  const mcpServer = await addServer(ask, mark)
  const scheduled = await addSchedule(ask, mark)
  const { id: budget } = await ask('POST', '/v1/budgets', { scope: 'organization', limit_usd: '1000' })
  const webhooks = await addWebhook(ask, mark)
  const taskQueue = `queue-${mark}`
  await ask('PUT', `/v1/task-queues/${taskQueue}`, { encryption_key: Buffer.alloc(32, mark).toString('base64') })
  await ask('PUT', `/v1/secrets/${database}`, { value: mark, hosts: [`${mark}.example.com`] })
  return {
    ids: {
      ...models,
      ...scheduled,
      ...webhooks,
      ...{ mcpServer, serverRef: `mcp:${toUuid(mcpServer)}` },
      ...{ organization, user: user.id, email: user.email, mark, chosenAgent, importedAgent, deletedSession },
      ...{
        ...finished,
        ...waiting,
        toolCall,
        apiKey: apiKey.id,
        invitation,
        idempotencyKey,
        image,
        database,
        skill,
        budget,
        taskQueue,
      },
      skillRef: `skill:${SkillId.parse(skill)}`,
    },
    headers,
    token: user.headers,
    keyHeaders: { Authorization: `ApiKey ${apiKey.key}` },
  }
}

function expectDone({ status, body }: Answer): Json {
  if (status >= 300) throw new Error(`${status} ${JSON.stringify(body)}`)
  return body
}

async function addAgent(
  ask: Ask,
  scripts: string,
  mark: string,
  steps: object[] = [{ text: mark }],
  more: object = {},
): Promise<string> {
  const system_prompt = `${mark}\n\`\`\`llmsim\n${JSON.stringify(steps)}\n\`\`\``
  return (await ask('POST', '/v1/agents', { name: mark, system_prompt, default_model_id: scripts, ...more })).id
}

async function addModel(ask: Ask, mark: string) {
  const { id: llmProvider } = await ask('POST', '/v1/llm-providers', { name: mark, provider_type: 'llmsim' })
  const model = { model_id: 'llmsim-echo', display_name: mark, is_favorite: true }
  const { id: llmModel } = await ask('POST', `/v1/llm-providers/${llmProvider}/models`, model)
  return { llmProvider, llmModel }
}

async function addSkill(ask: Ask, mark: string): Promise<string> {
  const archive = zipOf([
    { name: 'SKILL.md', data: skillMd(mark, mark) },
    { name: `${mark}.txt`, data: mark },
  ])
  return (await ask('POST', '/v1/skills/upload', formOf(archive))).id
}

/** Adds an unreachable server, and waits until the service knows that, so that its row no longer changes. */
async function addServer(ask: Ask, mark: string): Promise<string> {
  const { id } = await ask('POST', '/v1/mcp-servers', { name: mark, url: `https://mcp.example/${mark}`, api_key: mark })
  const oauth = { as: 'user' }
  const other = await ask('POST', '/v1/mcp-servers', { name: `${mark} 2`, url: `https://mcp.example/${mark}`, oauth })
  // The server is away, but whose sign-in it is to be is stored.
  await ask('POST', `/v1/mcp-servers/${other.id}/connect`).catch(() => undefined)
  for (const one of [id, other.id]) {
    const isKnown = async () => (await ask('GET', `/v1/mcp-servers/${one}`)).tools_error !== null
    await waitFor(isKnown, `${one} to be known as away`)
  }
  return id
}

/** Adds a schedule that runs only now, and waits until its row no longer changes. */
async function addSchedule(ask: Ask, mark: string): Promise<Pick<Ids, 'schedule' | 'execution'>> {
  const target = { type: 'activity', name: 'noop', input: { mark } }
  const body = { name: mark, description: mark, cron_expression: '0 0 1 1 *', enabled: false, target }
  const { id: schedule } = await ask('POST', '/v1/durable/schedules', body)
  const { execution_id: execution } = await ask('POST', `/v1/durable/schedules/${schedule}/trigger`)
  const hasEnded = async () => (await ask('GET', `/v1/durable/executions/${execution}`)).status === 'completed'
  await waitFor(hasEnded, `the execution ${execution} to end`)
  return { schedule, execution }
}

/** Adds a webhook without a receiver, and waits until its test no longer changes. */
async function addWebhook(ask: Ask, mark: string): Promise<Pick<Ids, 'webhook' | 'delivery'>> {
  const body = { url: `https://hooks.example/${mark}`, description: mark, events: ['budget.reached'] }
  const { id: webhook } = await ask('POST', '/v1/webhooks', body)
  const { id: delivery } = await ask('POST', `/v1/webhooks/${webhook}/test`)
  const read = async () => (await ask('GET', `/v1/webhooks/${webhook}/deliveries`)).data[0].status
  await waitFor(async () => (await read()) === 'failed', `${delivery} to fail`)
  return { webhook, delivery }
}

async function addFinished(
  ask: Ask,
  scripts: string,
  { mark, database, idempotencyKey }: Pick<Ids, 'mark' | 'database' | 'idempotencyKey'>,
) {
  const capabilities = [{ ref: 'session_sql_database' }, { ref: 'session_storage' }]
  const steps = [{ tool_calls: toolCallsOf(mark, database) }, { text: mark }]
  const agent = await addAgent(ask, scripts, mark, steps, { capabilities })
  const once = { 'Idempotency-Key': idempotencyKey }
  const { id: session } = await ask(
    'POST',
    '/v1/sessions',
    { agent_id: agent, title: mark, tags: [mark], snapshots: true },
    once,
  )
  const turn = await post(ask, session, mark, 'completed')
  await ask('PUT', `/v1/sessions/${session}/pin`)
  await ask('POST', `/v1/sessions/${session}/fs${encodeURI(FILE)}`, { content: mark })
  await ask('PATCH', `/v1/sessions/${session}`, { capabilities: [] })
  const { data } = await ask('GET', `/v1/sessions/${session}/events`)
  return { agent, session, turn, event: data[2].id }
}

/** Calls with which an agent keeps something in its session. */
const toolCallsOf = (mark: string, database: string) => [
  { name: 'sql_execute', arguments: { database, sql: `CREATE TABLE "${mark}" (a)` } },
  { name: 'kv_store', arguments: { operation: 'set', key: mark, value: mark } },
  { name: 'secret_store', arguments: { operation: 'set', name: mark, value: mark } },
]

async function addWaiting(ask: Ask, scripts: string, mark: string, toolCall: string) {
  const tool_calls = callsOf('ask').map((one) => ({ ...one, id: toolCall }))
  const agent = await addAgent(ask, scripts, mark, [{ tool_calls }, { text: mark }], { tools: [clientTool('ask')] })
  // A chat of a face, which keeps its own id of the session.
  const messages = [{ role: 'user', parts: [{ type: 'text', text: mark }] }]
  await ask('POST', `/v1/faces/ai-sdk/7/${agent}`, { id: mark, messages })
  const [{ id }] = (await ask('GET', `/v1/sessions?agent_id=${agent}`)).data
  await ask('PATCH', `/v1/sessions/${id}`, { title: mark })
  const [turn] = (await ask('GET', `/v1/sessions/${id}/turns`)).data
  return { waitingSession: id, waitingTurn: turn.id }
}

/** Posts a message and waits until its turn has the given status. */
async function post(ask: Ask, session: string, text: string, status: string): Promise<string> {
  const message = await ask('POST', `/v1/sessions/${session}/messages`, {
    message: { content: [{ type: 'text', text }] },
  })
  const turn = String(message.id).replace('message_', 'turn_')
  await waitFor(
    async () => (await ask('GET', `/v1/sessions/${session}/turns/${turn}`)).status === status,
    `${turn} to be ${status}`,
  )
  return turn
}
