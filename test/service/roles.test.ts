import type { Access } from '../../contract/kit/endpoint.ts'
import {
  ADMIN,
  addOwnOrganization,
  bearer,
  createApiKey,
  fromSomewhere,
  logInUser,
  registerUser,
} from '../support/auth.ts'
import { unknownIds } from '../support/belongings.ts'
import { call, expectError } from '../support/http.ts'
import { plan } from '../support/requests.ts'
import { sharedService } from '../support/shared/service.ts'
import { endpointOf, expectEntryForEach, operations, send } from '../support/walk.ts'

/**
 * Access to an operation. `member` and `admin` (owner or administrator) refer to the request's organization. `operator`
 * is the `admin` of the default organization, which belongs to the installation.
 */
type Decision = 'anybody' | 'has a login' | 'signed in' | 'member' | 'admin' | 'operator'

const DECISIONS: Record<string, Decision> = {
  'GET /health': 'anybody',
  'GET /health/ready': 'anybody',
  'GET /health/started': 'anybody',
  'GET /v1/auth/config': 'anybody',
  'POST /v1/auth/login': 'anybody',
  'POST /v1/auth/register': 'anybody',
  'POST /v1/auth/refresh': 'anybody',
  'POST /v1/auth/logout': 'has a login',
  'GET /v1/auth/oauth/{provider}': 'anybody',
  'GET /v1/auth/callback/{provider}': 'anybody',
  'GET /v1/auth/me': 'signed in',
  'GET /v1/auth/api-keys': 'member',
  'POST /v1/auth/api-keys': 'member',
  'DELETE /v1/auth/api-keys/{key_id}': 'member',
  'GET /v1/orgs': 'signed in',
  'POST /v1/orgs': 'signed in',
  'GET /v1/orgs/{org}': 'signed in',
  // The role in the organization of the path counts. See below, and test/service/members.test.ts.
  'PATCH /v1/orgs/{org}': 'signed in',
  'DELETE /v1/orgs/{org}': 'signed in',
  'GET /v1/orgs/{org}/members': 'signed in',
  'PATCH /v1/orgs/{org}/members/{user_id}': 'signed in',
  'DELETE /v1/orgs/{org}/members/{user_id}': 'signed in',
  'GET /v1/orgs/{org}/invitations': 'signed in',
  'POST /v1/orgs/{org}/invitations': 'signed in',
  'DELETE /v1/orgs/{org}/invitations/{invitation_id}': 'signed in',
  'POST /v1/orgs/join': 'signed in',
  'GET /v1/users': 'member',
  'DELETE /v1/users/me': 'signed in',
  'POST /v1/users/me/switch-org': 'signed in',
  'GET /v1/agents': 'member',
  'GET /v1/agents/summaries': 'member',
  'POST /v1/agents': 'member',
  'POST /v1/agents/import': 'member',
  'POST /v1/agents/preview': 'member',
  'GET /v1/agents/{agent_id}': 'member',
  'PUT /v1/agents/{agent_id}': 'member',
  'PATCH /v1/agents/{agent_id}': 'member',
  'DELETE /v1/agents/{agent_id}': 'member',
  'POST /v1/agents/{agent_id}/copy': 'member',
  'GET /v1/agents/{agent_id}/export': 'member',
  'GET /v1/agents/{agent_id}/versions': 'member',
  'GET /v1/agents/{agent_id}/versions/{version}': 'member',
  'GET /v1/agents/{agent_id}/versions/{version}/diff': 'member',
  'POST /v1/agents/{agent_id}/versions/{version}/restore': 'member',
  'GET /v1/sessions': 'member',
  'POST /v1/sessions': 'member',
  'GET /v1/sessions/{session_id}': 'member',
  'PATCH /v1/sessions/{session_id}': 'member',
  'DELETE /v1/sessions/{session_id}': 'member',
  'PUT /v1/sessions/{session_id}/pin': 'member',
  'DELETE /v1/sessions/{session_id}/pin': 'member',
  'GET /v1/sessions/{session_id}/messages': 'member',
  'POST /v1/sessions/{session_id}/messages': 'member',
  'GET /v1/sessions/{session_id}/events': 'member',
  'GET /v1/sessions/{session_id}/sse': 'member',
  'GET /v1/events/sse': 'member',
  'GET /v1/turns': 'member',
  'GET /v1/turns/counts': 'member',
  'POST /v1/turns/cancel': 'member',
  'GET /v1/sessions/{session_id}/turns': 'member',
  'GET /v1/sessions/{session_id}/turns/{turn_id}': 'member',
  'POST /v1/sessions/{session_id}/cancel': 'member',
  'POST /v1/sessions/{session_id}/compact': 'member',
  'POST /v1/sessions/{session_id}/fork': 'member',
  'GET /v1/sessions/{session_id}/tree': 'member',
  'POST /v1/sessions/{session_id}/tool-results': 'member',
  'POST /v1/sessions/{session_id}/tool-calls/{tool_call_id}/lease': 'member',
  'DELETE /v1/sessions/{session_id}/tool-calls/{tool_call_id}/lease': 'member',
  'GET /v1/sessions/{session_id}/fs': 'member',
  'POST /v1/sessions/{session_id}/fs/_/copy': 'member',
  'POST /v1/sessions/{session_id}/fs/_/move': 'member',
  'POST /v1/sessions/{session_id}/fs/_/stat': 'member',
  'POST /v1/sessions/{session_id}/fs/_/grep': 'member',
  'GET /v1/sessions/{session_id}/fs/{path*}': 'member',
  'POST /v1/sessions/{session_id}/fs/{path*}': 'member',
  'PUT /v1/sessions/{session_id}/fs/{path*}': 'member',
  'DELETE /v1/sessions/{session_id}/fs/{path*}': 'member',
  'GET /v1/sessions/{session_id}/storage/keys': 'member',
  'GET /v1/sessions/{session_id}/storage/secrets': 'member',
  'PUT /v1/sessions/{session_id}/storage/keys/{key}': 'member',
  'DELETE /v1/sessions/{session_id}/storage/keys/{key}': 'member',
  'PUT /v1/sessions/{session_id}/storage/secrets/{name}': 'member',
  'DELETE /v1/sessions/{session_id}/storage/secrets/{name}': 'member',
  'GET /v1/sessions/{session_id}/databases': 'member',
  'POST /v1/sessions/{session_id}/databases': 'member',
  'GET /v1/sessions/{session_id}/databases/{name}': 'member',
  'DELETE /v1/sessions/{session_id}/databases/{name}': 'member',
  'GET /v1/sessions/{session_id}/databases/{name}/schema': 'member',
  'GET /v1/sessions/{session_id}/databases/{name}/file': 'member',
  'PUT /v1/sessions/{session_id}/databases/{name}/file': 'member',
  'POST /v1/sessions/{session_id}/databases/{name}/query': 'member',
  'GET /v1/llm-providers': 'member',
  'POST /v1/llm-providers': 'admin',
  'GET /v1/llm-providers/{provider_id}': 'member',
  'PATCH /v1/llm-providers/{provider_id}': 'admin',
  'DELETE /v1/llm-providers/{provider_id}': 'admin',
  'POST /v1/llm-providers/{provider_id}/sync-models': 'admin',
  'GET /v1/mcp-servers': 'member',
  'POST /v1/mcp-servers': 'admin',
  'GET /v1/mcp-servers/{server_id}': 'member',
  'PATCH /v1/mcp-servers/{server_id}': 'admin',
  'DELETE /v1/mcp-servers/{server_id}': 'admin',
  'GET /v1/images': 'member',
  'POST /v1/images': 'member',
  'GET /v1/images/{image_id}': 'member',
  'GET /v1/images/{image_id}/thumbnail': 'member',
  'DELETE /v1/images/{image_id}': 'member',
  'GET /v1/llm-models': 'member',
  'GET /v1/llm-models/{id}': 'member',
  'PATCH /v1/llm-models/{id}': 'admin',
  'DELETE /v1/llm-models/{id}': 'admin',
  'GET /v1/llm-providers/{provider_id}/models': 'member',
  'POST /v1/llm-providers/{provider_id}/models': 'admin',
  'GET /v1/skills': 'member',
  'POST /v1/skills': 'admin',
  'POST /v1/skills/upload': 'admin',
  'POST /v1/skills/validate': 'member',
  'GET /v1/skills/{skill_id}': 'member',
  'GET /v1/skills/{skill_id}/content': 'member',
  'PUT /v1/skills/{skill_id}/content': 'admin',
  'PATCH /v1/skills/{skill_id}': 'admin',
  'DELETE /v1/skills/{skill_id}': 'admin',
  'GET /v1/capabilities': 'member',
  'GET /v1/capabilities/{capability_id}': 'member',
  'GET /v1/audit': 'admin',
  'GET /v1/durable/sse': 'operator',
  'GET /v1/budgets': 'admin',
  'POST /v1/budgets': 'admin',
  'GET /v1/budgets/{budget_id}': 'admin',
  'PATCH /v1/budgets/{budget_id}': 'admin',
  'DELETE /v1/budgets/{budget_id}': 'admin',
  'GET /v1/usage': 'admin',
  'GET /v1/durable/schedules': 'member',
  'POST /v1/durable/schedules': 'admin',
  'GET /v1/durable/schedules/{schedule_id}': 'member',
  'PATCH /v1/durable/schedules/{schedule_id}': 'admin',
  'DELETE /v1/durable/schedules/{schedule_id}': 'admin',
  'POST /v1/durable/schedules/{schedule_id}/pause': 'admin',
  'POST /v1/durable/schedules/{schedule_id}/resume': 'admin',
  'POST /v1/durable/schedules/{schedule_id}/trigger': 'admin',
  'GET /v1/durable/schedules/{schedule_id}/stats': 'member',
  'GET /v1/durable/schedules/{schedule_id}/executions': 'member',
  'GET /v1/task-queues': 'member',
  'PUT /v1/task-queues/{task_queue}': 'admin',
  'DELETE /v1/task-queues/{task_queue}': 'admin',
  'POST /v1/mcp-servers/{server_id}/connect': 'member',
  'GET /v1/mcp-servers/{server_id}/connect': 'member',
  'DELETE /v1/mcp-servers/{server_id}/grant': 'member',
  'GET /v1/mcp-servers/{server_id}/resources': 'member',
  'GET /v1/mcp-servers/{server_id}/resources/read': 'member',
  'GET /v1/mcp-servers/{server_id}/prompts': 'member',
  'POST /v1/mcp-servers/{server_id}/prompts/get': 'member',
  'GET /v1/mcp-sign-in/callback': 'anybody',
  'GET /v1/secrets': 'member',
  'PUT /v1/secrets/{name}': 'admin',
  'DELETE /v1/secrets/{name}': 'admin',
  'GET /v1/webhooks': 'admin',
  'POST /v1/webhooks': 'admin',
  'GET /v1/webhooks/{webhook_id}': 'admin',
  'PATCH /v1/webhooks/{webhook_id}': 'admin',
  'DELETE /v1/webhooks/{webhook_id}': 'admin',
  'POST /v1/webhooks/{webhook_id}/rotate-secret': 'admin',
  'POST /v1/webhooks/{webhook_id}/test': 'admin',
  'GET /v1/webhooks/{webhook_id}/deliveries': 'admin',
  'POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver': 'admin',
  'GET /v1/durable/executions/{execution_id}': 'member',
}

/** Operations that would let a key outlive its user's login or reach beyond its organization. */
const NOT_FOR_KEYS = [
  'POST /v1/orgs',
  'DELETE /v1/orgs/{org}',
  'PATCH /v1/orgs/{org}/members/{user_id}',
  'DELETE /v1/orgs/{org}/members/{user_id}',
  'POST /v1/orgs/{org}/invitations',
  'DELETE /v1/orgs/{org}/invitations/{invitation_id}',
  'POST /v1/orgs/join',
  'DELETE /v1/users/me',
  'POST /v1/users/me/switch-org',
  'POST /v1/auth/api-keys',
  'DELETE /v1/auth/api-keys/{key_id}',
]

const ACCESS: Record<Decision, Access> = {
  anybody: 'public',
  'has a login': 'login',
  'signed in': 'user',
  member: 'member',
  admin: 'admin',
  operator: 'operator',
}

/**
 * Operations to walk. Without a logout and the deletion of the user, which would end the walk: see auth.test.ts and
 * deleted-accounts.test.ts.
 */
const guarded = operations.filter(
  (operation) =>
    !['anybody', 'has a login'].includes(DECISIONS[operation] ?? '') && operation !== 'DELETE /v1/users/me',
)
const DEFAULT_ORGANIZATION = 'org_00000000000000000000000000000001'
const inDefault = { 'X-Org-Id': DEFAULT_ORGANIZATION }

type Headers = Record<string, string>
type IsAllowed = (operation: string) => boolean

let url: string
let owner: Headers
beforeAll(async () => {
  url = (await sharedService('full')).url
  owner = { ...(await logInUser(url, ADMIN)).headers, ...inDefault }
})

/**
 * Sends a request with ids that nothing has and returns the status. Allowed requests are answered with 2xx, 400 or 404.
 */
async function statusOf(operation: string, headers: Headers): Promise<number> {
  const [sent] = plan(operation, unknownIds(), unknownIds())
  if (sent === undefined) throw new Error(`test/support/requests.ts has no entry for "${operation}"`)
  return (await send(url, { ...sent, headers: { ...fromSomewhere(), ...headers } })).status
}

/** Expects 403 for each operation that is not allowed, and for no other. */
async function walk(who: string, headers: Headers, isAllowed: IsAllowed): Promise<void> {
  const seen: Record<string, string> = {}
  for (const operation of guarded) {
    const status = await statusOf(operation, headers)
    seen[operation] = status < 400 || [400, 404].includes(status) ? 'allowed' : `${status}`
  }
  const decided = guarded.map((operation) => [operation, isAllowed(operation) ? 'allowed' : '403'])
  expect(seen).toEqual(Object.fromEntries(decided))
  const refused = guarded.filter((operation) => !isAllowed(operation)).length
  process.stdout.write(`roles, ${who}: ${guarded.length} operations, ${refused} refused\n`)
}

const allowedTo =
  (...decisions: Decision[]): IsAllowed =>
  (operation) =>
    decisions.includes(DECISIONS[operation] ?? 'operator')

describe('the access to operations', () => {
  it('is decided for every operation', () => {
    const what = `who may do it: ${Object.keys(ACCESS).join(', ')}`
    expectEntryForEach(DECISIONS, 'test/service/roles.test.ts', what)
  })

  it('is what the contract says', () => {
    const inContract = operations.map((operation) => [operation, endpointOf(operation).access])
    const decided = operations.map((operation) => [operation, ACCESS[DECISIONS[operation] ?? 'operator']])
    expect(inContract).toEqual(decided)
    expect(operations.filter((operation) => endpointOf(operation).login)).toEqual(NOT_FOR_KEYS)
  })
})

describe('of the default organization', () => {
  it('a member may do what members may', async () => {
    const { headers } = await registerUser(url)
    await walk('member', { ...headers, ...inDefault }, allowedTo('signed in', 'member'))
  })

  it('an owner may do everything', async () => {
    await walk('owner', owner, allowedTo('signed in', 'member', 'admin', 'operator'))
  })
})

describe('of another organization', () => {
  it('the owner may do everything except operate the installation', async () => {
    const { headers } = await addOwnOrganization(url, await registerUser(url))
    await walk('owner of another organization', headers, allowedTo('signed in', 'member', 'admin'))
  })

  it('an operator has no operator rights', async () => {
    const operator = await logInUser(url, ADMIN)
    const { headers } = await addOwnOrganization(url, operator)
    await walk('operator in another organization', headers, allowedTo('signed in', 'member', 'admin'))
  })
})

describe('an organization', () => {
  it('is changed only by its owners and administrators, whatever the organization of the request', async () => {
    const user = await registerUser(url)
    const own = await addOwnOrganization(url, user)
    const patch = (id: string, headers: Headers) => call(url, 'PATCH', `/v1/orgs/${id}`, { name: 'Changed' }, headers)
    expectError(await patch(DEFAULT_ORGANIZATION, user.headers), 403)
    expectError(await patch(DEFAULT_ORGANIZATION, own.headers), 403)
    expect((await patch(own.id, { ...user.headers, ...inDefault })).status).toBe(200)
    const stranger = await registerUser(url)
    expectError(await patch(own.id, stranger.headers), 404)
  })
})

describe('an API key', () => {
  const isForKeys: IsAllowed = (operation) => !NOT_FOR_KEYS.includes(operation)
  const isRead: IsAllowed = (operation) => endpointOf(operation).method === 'GET'
  const isOf =
    (area: string): IsAllowed =>
    (operation) =>
      endpointOf(operation).tag === area

  const keyWith = async (scopes: string[] | null, headers = owner): Promise<Headers> =>
    bearer((await createApiKey(url, headers, { scopes })).key)

  it.each<[scopes: string[] | null, IsAllowed]>([
    [null, isForKeys],
    [[], isForKeys],
    [['write'], isForKeys],
    [['read'], isRead],
    [['read', 'write'], isForKeys],
    [['sessions:read'], (operation) => isOf('sessions')(operation) && isRead(operation)],
    [['sessions:write'], isOf('sessions')],
    [['durable:read'], (operation) => isOf('durable')(operation) && isRead(operation)],
    [
      ['agents:read', 'turns:write'],
      (operation) => (isOf('agents')(operation) && isRead(operation)) || isOf('turns')(operation),
    ],
    [['auth:write'], (operation) => isOf('auth')(operation) && isForKeys(operation)],
    [['read', 'sessions:write'], (operation) => isRead(operation) || isOf('sessions')(operation)],
  ])('of an owner may do what its scopes allow: %j', async (scopes, isAllowed) => {
    await walk(`API key ${JSON.stringify(scopes)}`, await keyWith(scopes), isAllowed)
  })

  it('may do no more than its user', async () => {
    const { headers } = await registerUser(url)
    const isAllowed = allowedTo('signed in', 'member')
    const key = await keyWith(['write'], { ...headers, ...inDefault })
    await walk("a member's API key", key, (operation) => isAllowed(operation) && isForKeys(operation))
  })

  it('of another organization cannot operate the installation, whatever the request names', async () => {
    const { headers } = await addOwnOrganization(url, await registerUser(url))
    const isAllowed = allowedTo('signed in', 'member', 'admin')
    const key = { ...(await keyWith(null, headers)), ...inDefault }
    await walk("another organization's API key", key, (operation) => isAllowed(operation) && isForKeys(operation))
  })
})

describe('public operations', () => {
  it('are never refused with 403', async () => {
    const anybodys = operations.filter((operation) => DECISIONS[operation] === 'anybody')
    for (const operation of anybodys) expect([operation, await statusOf(operation, {})]).not.toEqual([operation, 403])
  })
})
