import { endpoints } from '../../contract/index.ts'
import { examples } from '../../contract/kit/examples.ts'
import { FULL_MODE, fromSomewhere } from '../support/auth.ts'
import { startEverythingServer } from '../support/everything-server.ts'
import { call, createScriptedSession, type Json, waitFor } from '../support/http.ts'
import { startService, type TestService } from '../support/service.ts'

/** Status of the session that waits for its client. */
const WAITING = 'waitingfortoolresults'

let service: TestService
let server: Awaited<ReturnType<typeof startEverythingServer>>
let document: Json
beforeAll(async () => {
  server = await startEverythingServer()
  service = await startService({ environment: { ...FULL_MODE, ALLOWED_PRIVATE_HOSTS: new URL(server.url).host } })
  document = (await call(service.url, 'GET', '/openapi.json')).body
})
afterAll(async () => {
  await service.stop()
  await server.stop()
})

const exampleOf = ({ path, method }: { path: string; method: string }): Json => {
  const { content } = document.paths[path.replace('*}', '}')][method.toLowerCase()].requestBody
  const [, { example }] = Object.entries<Json>(content)[0] as [string, Json]
  return example
}

it('has an example of each body but files', () => {
  const withBody = endpoints.filter(({ body }) => body !== undefined)
  expect(Object.keys(examples).sort()).toEqual(withBody.map(({ operationId }) => operationId).sort())
  for (const endpoint of withBody) expect(exampleOf(endpoint)).toEqual(examples[endpoint.operationId])
})

/** What the examples so far have created: ids for paths, the caller's headers, and all answers. */
type Walk = { ids: Record<string, string>; headers: Record<string, string>; answers: Record<string, Json> }

/** Parameter of later paths that the answer of an operation gives. */
const CREATED: Record<string, string> = {
  createOrganization: 'org',
  createAgent: 'agent_id',
  createSession: 'session_id',
  createProvider: 'provider_id',
  createModel: 'id',
  createMcpServer: 'server_id',
  createSkill: 'skill_id',
  createSchedule: 'schedule_id',
  createBudget: 'budget_id',
  createWebhook: 'webhook_id',
}

const signIn = async ({ headers }: Walk, { access_token }: Json): Promise<undefined> => {
  headers.Authorization = `Bearer ${access_token}`
}

/** What happens before an example is sent. Returns its token, the only part of an example that is replaced. */
const BEFORE: Record<string, (walk: Walk) => Promise<object | undefined>> = {
  refreshTokens: async ({ answers }) => ({ refresh_token: answers.login.refresh_token }),
  createApiKey: async (walk) => signIn(walk, walk.answers.refreshTokens),
  joinOrganization: async (walk) => {
    const guest = { email: 'guest@example.com', password: 'correct horse battery staple', name: 'Guest' }
    await signIn(walk, (await call(service.url, 'POST', '/v1/auth/register', guest, fromSomewhere())).body)
    walk.ids.user_id = (await call(service.url, 'GET', '/v1/auth/me', undefined, walk.headers)).body.id
    return { token: walk.answers.createInvitation.token }
  },
  updateMember: async (walk) => signIn(walk, walk.answers.refreshTokens),
  createAgent: async ({ headers, ids }) => {
    headers['X-Org-Id'] = ids.org ?? ''
    return undefined
  },
  compactSession: async ({ headers, ids }) => {
    const read = () => call(service.url, 'GET', `/v1/sessions/${ids.session_id}`, undefined, headers)
    await waitFor(async () => (await read()).body.status === 'idle', 'the answer')
    return undefined
  },
  leaseToolCall: async ({ headers, ids }) => {
    ids.session_id = await createWaiting(headers)
    ids.tool_call_id = 'call_1'
    return undefined
  },
  getMcpPrompt: async ({ headers, ids }) => {
    const body = { name: 'Prompts', url: server.url }
    ids.server_id = (await call(service.url, 'POST', '/v1/mcp-servers', body, headers)).body.id
    return undefined
  },
  createProvider: async ({ ids, answers }) => {
    ids.session_id = answers.createSession.id
    return undefined
  },
}

/** Creates a session whose turn waits for the result of the call `call_1`. */
async function createWaiting(headers: Record<string, string>): Promise<string> {
  const tools = [{ type: 'client_side', name: 'ask_user', description: 'Asks.', parameters: { type: 'object' } }]
  const steps = [{ tool_calls: [{ id: 'call_1', name: 'ask_user', arguments: {} }] }, { text: 'Blue.' }]
  const id = await createScriptedSession(service.url, steps, { tools }, {}, headers)
  await call(service.url, 'POST', `/v1/sessions/${id}/messages`, examples.createMessage, headers)
  const read = () => call(service.url, 'GET', `/v1/sessions/${id}`, undefined, headers)
  await waitFor(async () => (await read()).body.status === WAITING, 'the call of the tool')
  return id
}

it('has examples that succeed as they stand, one after the other', async () => {
  const walk: Walk = {
    ids: { path: 'plan.md', name: 'notes', version: '1', task_queue: 'warehouse' },
    headers: {},
    answers: {},
  }
  const { ids, headers, answers } = walk
  for (const operationId of Object.keys(examples)) {
    const endpoint = endpoints.find((one) => one.operationId === operationId)
    if (endpoint === undefined) throw new Error(`there is no operation ${operationId}`)
    const token = await BEFORE[operationId]?.(walk)
    const example = exampleOf(endpoint)
    const path = endpoint.path.replace(/\{(\w+)\*?\}/g, (_, name) => ids[name] ?? `no ${name}`)
    const sent = { ...fromSomewhere(), ...headers, 'Content-Type': endpoint.textTypes?.[0] ?? 'application/json' }
    const body = token === undefined ? example : { ...example, ...token }
    const answer = await call(service.url, endpoint.method, path, body, sent)
    const refused = answer.status in endpoint.responses ? [] : [operationId, answer.status, answer.body]
    expect(refused).toEqual([])
    answers[operationId] = answer.body
    const parameter = CREATED[operationId]
    if (parameter !== undefined) ids[parameter] = answer.body.id
  }
})
