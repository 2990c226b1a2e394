import { createHash } from 'node:crypto'
import { noteFailedSignIn } from '../../domain/identity/auth/failed-sign-ins.ts'
import { newUuid } from '../../domain/kit/ids.ts'
import { deleteExpired } from '../../domain/upkeep/retention.ts'
import {
  ADMIN,
  ADMIN_VARIABLES,
  addOwnOrganization,
  createApiKey,
  FULL_MODE,
  fromSomewhere,
  logInUser,
  newPassword,
  registerUser,
  type TestUser,
} from '../support/auth.ts'
import { createOwner, type Ids, type Owner } from '../support/belongings.ts'
import { call, createScriptedSession, expectError, type Json, textMessage, waitFor } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { type ListServer, openaiList, startListServer } from '../support/list-server.ts'
import { plan } from '../support/requests.ts'
import { startService, type TestService } from '../support/service.ts'
import { cancel, postAndAsk, submit } from '../support/turns.ts'
import { expectEntryForEach, operations, type Sent, send } from '../support/walk.ts'

type Headers = Record<string, string>

let service: TestService
let list: ListServer
let owner: Owner
beforeAll(async () => {
  const environment = { ...FULL_MODE, ...ADMIN_VARIABLES, ALLOW_PRIVATE_NETWORK: 'true' }
  service = await startService({ environment })
  owner = await createOwner(service.url)
  list = await startListServer()
  list.answer = openaiList('a')
})
afterAll(async () => {
  await list.close()
  await service.stop()
})

const readAudit = async (headers: Headers, query = ''): Promise<Json[]> => {
  const { status, body } = await call(service.url, 'GET', `/v1/audit?limit=1000${query}`, undefined, headers)
  expect(status).toBe(200)
  return body.data
}

const USE = 'is the use of a session, which its events and its data show'
const READS = 'changes nothing'

/** Operations that may change something and have no entry, with the reason. */
const EXEMPT: Record<string, string> = {
  'POST /v1/auth/refresh': 'renews a login, which has an entry',
  'POST /v1/users/me/switch-org': 'sets a cookie',
  'POST /v1/mcp-servers/{server_id}/connect': 'begins a sign-in elsewhere, whose end has an entry',
  'DELETE /v1/mcp-servers/{server_id}/grant':
    'needs a sign-in elsewhere; test/service/mcp-sign-in.test.ts reads its entry',
  'POST /v1/mcp-servers/{server_id}/prompts/get': READS,
  'POST /v1/agents/preview': READS,
  'POST /v1/skills/validate': READS,
  'POST /v1/sessions': USE,
  'POST /v1/sessions/{session_id}/fork': USE,
  'PUT /v1/sessions/{session_id}/pin': USE,
  'DELETE /v1/sessions/{session_id}/pin': USE,
  'POST /v1/sessions/{session_id}/messages': USE,
  'POST /v1/sessions/{session_id}/compact': USE,
  'POST /v1/sessions/{session_id}/tool-calls/{tool_call_id}/lease': USE,
  'DELETE /v1/sessions/{session_id}/tool-calls/{tool_call_id}/lease': USE,
  'POST /v1/webhooks/{webhook_id}/test': `${USE}: the list of deliveries tells of it`,
  'POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver': `${USE}: the list of deliveries tells of it`,
  'POST /v1/sessions/{session_id}/tool-results': `${USE}; approvals have entries, see below`,
  'POST /v1/sessions/{session_id}/fs/_/copy': USE,
  'POST /v1/sessions/{session_id}/fs/_/move': USE,
  'POST /v1/sessions/{session_id}/fs/_/stat': READS,
  'POST /v1/sessions/{session_id}/fs/_/grep': READS,
  'POST /v1/sessions/{session_id}/fs/{path*}': USE,
  'PUT /v1/sessions/{session_id}/fs/{path*}': USE,
  'DELETE /v1/sessions/{session_id}/fs/{path*}': USE,
  'PUT /v1/sessions/{session_id}/storage/keys/{key}': USE,
  'DELETE /v1/sessions/{session_id}/storage/keys/{key}': USE,
  'PUT /v1/sessions/{session_id}/storage/secrets/{name}': USE,
  'DELETE /v1/sessions/{session_id}/storage/secrets/{name}': USE,
  'POST /v1/sessions/{session_id}/databases': USE,
  'DELETE /v1/sessions/{session_id}/databases/{name}': USE,
  'PUT /v1/sessions/{session_id}/databases/{name}/file': USE,
  'POST /v1/sessions/{session_id}/databases/{name}/query': USE,
  'POST /v1/images': USE,
  'DELETE /v1/images/{image_id}': USE,
}

const changing = operations.filter((operation) => !operation.startsWith('GET '))
/** Operations that come last, because they would end the walk. Others come before the deletion of what they are on. */
const LAST = [
  'DELETE /v1/llm-providers/{provider_id}',
  'POST /v1/auth/logout',
  'DELETE /v1/users/me',
  'DELETE /v1/orgs/{org}',
]
const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE']
const rankOf = (operation: string): number =>
  LAST.includes(operation) ? METHODS.length + LAST.indexOf(operation) : METHODS.indexOf(operation.split(' ')[0] ?? '')
const depthOf = (operation: string): number => (operation.startsWith('DELETE') ? operation.split('/').length : 0)
const walked = [...changing].sort((a, b) => rankOf(a) - rankOf(b) || depthOf(b) - depthOf(a))

type Walker = { owner: Owner; friend: TestUser; listUrl: string }

/** Requests for operations that the tables of requests cannot make succeed. */
const OWN_WAYS: Record<string, (walker: Walker) => Promise<Sent>> = {
  'POST /v1/auth/login': async ({ friend: { email, password } }) => asked('/v1/auth/login', {}, { email, password }),
  'POST /v1/auth/register': async () =>
    asked('/v1/auth/register', {}, { email: `${newUuid()}@example.com`, password: newPassword(), name: 'New' }),
  'POST /v1/auth/logout': async ({ friend }) =>
    asked('/v1/auth/logout', (await logInUser(service.url, friend)).headers),
  'POST /v1/orgs/join': async ({ owner, friend }) => {
    const path = `/v1/orgs/${owner.ids.organization}/invitations`
    const { body } = await call(service.url, 'POST', path, { role: 'member' }, owner.headers)
    return asked('/v1/orgs/join', friend.headers, { token: body.token })
  },
  'PATCH /v1/orgs/{org}/members/{user_id}': async ({ owner, friend }) =>
    ofFriend('PATCH', owner, friend, { role: 'admin' }),
  'DELETE /v1/orgs/{org}/members/{user_id}': async ({ owner, friend }) => ofFriend('DELETE', owner, friend),
  'POST /v1/turns/cancel': async ({ owner: { ids, headers } }) => {
    const { agent_id } = (await call(service.url, 'GET', `/v1/sessions/${ids.waitingSession}`, undefined, headers)).body
    const { id } = (await call(service.url, 'POST', '/v1/sessions', { agent_id }, headers)).body
    await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Wait'), headers)
    return asked('/v1/turns/cancel', headers, { session_id: id })
  },
  'DELETE /v1/users/me': async () => {
    const { headers } = await registerUser(service.url)
    return { method: 'DELETE', path: '/v1/users/me', headers }
  },
  'POST /v1/llm-providers/{provider_id}/sync-models': async ({ owner, listUrl }) => {
    const provider = { name: 'Listing', provider_type: 'openai', base_url: listUrl, api_key: 'sk-1' }
    const { body } = await call(service.url, 'POST', '/v1/llm-providers', provider, owner.headers)
    return asked(`/v1/llm-providers/${body.id}/sync-models`, owner.headers)
  },
}

const asked = (path: string, headers: Headers, body?: object): Sent => ({ method: 'POST', path, headers, body })
const ofFriend = (method: string, { ids, headers }: Owner, friend: TestUser, body?: object): Sent => ({
  ...{ method, headers, body },
  path: `/v1/orgs/${ids.organization}/members/${friend.id}`,
})

/** Sends requests of an operation until one has an entry, and returns the entries of all. */
async function entriesOf(operation: string, walker: Walker): Promise<Json[]> {
  const { ids, headers } = walker.owner
  const own: Ids = { ...ids, idempotencyKey: newUuid() }
  const way = OWN_WAYS[operation]
  const ways = way === undefined ? plan(operation, own, own) : [await way(walker)]
  for (const sent of ways) {
    const requestId = newUuid()
    const more = { ...fromSomewhere(), ...(way === undefined ? headers : {}), 'X-Request-Id': requestId }
    await send(service.url, { ...sent, headers: { ...more, ...sent.headers } })
    const entries = await service.platform.deps.db.auditEntry.findMany({ where: { requestId } })
    if (entries.length > 0) return entries
  }
  return []
}

describe('the audit log', () => {
  it('has an entry of every operation that changes something, or a reason why not', async () => {
    const walker = {
      owner: await createOwner(service.url),
      friend: await registerUser(service.url),
      listUrl: list.baseUrl,
    }
    const told: Record<string, string> = {}
    for (const operation of walked) {
      const [entry] = await entriesOf(operation, walker)
      if (entry !== undefined) told[operation] = entry.action
      expect({ operation, isTold: entry !== undefined }).toEqual({ operation, isTold: !(operation in EXEMPT) })
    }
    expectEntryForEach({ ...told, ...EXEMPT }, 'test/service/audit.test.ts', 'a call of `audit`, or a reason', changing)
    expect(told).toMatchObject({
      'POST /v1/auth/login': 'user.sign_in',
      'DELETE /v1/agents/{agent_id}': 'agent.archive',
      'POST /v1/durable/schedules/{schedule_id}/pause': 'schedule.update',
      'DELETE /v1/orgs/{org}': 'organization.delete',
    })
  })

  it('says who, from where, by which key and request, and which fields, but no values', async () => {
    const { ids, headers } = owner
    const key = await createApiKey(service.url, headers, { name: 'A key' })
    const hostile = '"},{"=cmd()|\'%0a'
    const more = { Authorization: `Bearer ${key.key}`, 'X-Request-Id': hostile, 'X-Forwarded-For': '2001:db8::7' }
    const change = { name: 'SECRET-NAME\n=1+1', system_prompt: 'SECRET-PROMPT' }
    expect((await call(service.url, 'PATCH', `/v1/agents/${ids.agent}`, change, more)).status).toBe(200)
    const [entry] = await readAudit(headers)
    expect(entry).toEqual({
      id: expect.any(String),
      created_at: expect.any(String),
      action: 'agent.update',
      user_id: ids.user,
      api_key_id: key.id,
      address: '2001:db8::7',
      request_id: hostile,
      target_type: 'agent',
      target_id: ids.agent,
      details: { fields: ['name', 'system_prompt'] },
    })
    expect(JSON.stringify(await readAudit(headers))).not.toContain('SECRET')
  })

  it('keeps the entries of a key whose owner has left, and of deleted things', async () => {
    const { ids, headers } = owner
    const friend = await registerUser(service.url)
    const { body } = await call(
      service.url,
      'POST',
      `/v1/orgs/${ids.organization}/invitations`,
      { role: 'admin' },
      headers,
    )
    await call(service.url, 'POST', '/v1/orgs/join', { token: body.token }, friend.headers)
    const key = await createApiKey(service.url, { ...friend.headers, 'X-Org-Id': ids.organization })
    const byKey = { Authorization: `Bearer ${key.key}` }
    await call(service.url, 'DELETE', `/v1/mcp-servers/${ids.mcpServer}`, undefined, byKey)
    await call(service.url, 'DELETE', '/v1/users/me', undefined, friend.headers)
    expect((await call(service.url, 'GET', '/v1/audit', undefined, byKey)).status).toBe(401)
    const told = await readAudit(headers, `&api_key_id=${key.id}`)
    expect(told).toMatchObject([{ action: 'mcp_server.delete', target_id: ids.mcpServer, user_id: friend.id }])
    const ofFriend = await readAudit(headers, `&target_id=${friend.id}`)
    expect(ofFriend.map(({ action }) => action)).toEqual(['user.delete', 'member.join'])
  })

  it('is for owners and administrators of the organization, and has nothing of another', async () => {
    const { ids, headers } = owner
    const friend = await registerUser(service.url)
    const other = await addOwnOrganization(service.url, friend)
    const query = `&target_id=${ids.agent}&before=${(await readAudit(headers))[0]?.id}`
    expect(await readAudit(other.headers, query)).toEqual([])
    expect((await readAudit(other.headers)).map(({ action }) => action)).toEqual(['organization.create'])
    expectError(await call(service.url, 'GET', '/v1/audit', undefined, friend.headers), 403, /Only owners/)
  })

  it('tells the operators of a deleted organization', async () => {
    const user = await registerUser(service.url)
    const { id, headers } = await addOwnOrganization(service.url, user)
    await call(service.url, 'DELETE', `/v1/orgs/${id}`, undefined, headers)
    const admin = await logInUser(service.url, ADMIN)
    const told = await readAudit(admin.headers, `&target_id=${id}`)
    expect(told).toMatchObject([{ action: 'organization.delete', user_id: user.id }])
  })
})

describe('an approval', () => {
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

  it('is told with the hash of the exact arguments, and so are a denial and a cancellation', async () => {
    const { headers, ids } = owner
    const target = { url: service.url, headers }
    const calls = [
      { id: 'yes', name: 'write_file', arguments: { path: '/a.txt', content: 'ä"\n' } },
      { id: 'no', name: 'delete_file', arguments: { path: '/a.txt' } },
    ]
    const steps = [{ tool_calls: calls }, { tool_calls: [{ ...calls[1], id: 'open' }] }]
    const more = {
      capabilities: [{ ref: 'session_file_system' }],
      tools: calls.map(({ name }) => guardedBuiltin(name)),
    }
    const id = await createScriptedSession(target, steps, more)
    const turn = await postAndAsk(target, id)
    const bad = [
      { tool_call_id: 'yes', result: { approved: true } },
      { tool_call_id: 'no', result: 'maybe' },
    ]
    expectError(await submit(target, id, bad), 400, /approved/)
    const decisions = [
      { tool_call_id: 'yes', result: { approved: true } },
      { tool_call_id: 'no', result: { approved: false } },
    ]
    expect((await submit(target, id, decisions)).status).toBe(200)
    await waitFor(async () => (await postedStatus(target, id)) === 'waiting', 'the second question')
    expect((await cancel(target, id)).status).toBe(200)
    const told = await readAudit(headers, `&target_id=${turn.id}`)
    const hash = sha256('{"content":"ä\\"\\n","path":"/a.txt"}')
    expect(told.map(({ action, details, user_id }) => ({ action, details, user_id }))).toEqual(
      [
        { action: 'turn.cancel', details: { session_id: id } },
        { action: 'turn.deny', details: { tool_call_id: 'no', arguments_sha256: sha256('{"path":"/a.txt"}') } },
        { action: 'turn.approve', details: { tool_call_id: 'yes', tool: 'write_file', arguments_sha256: hash } },
      ].map(({ action, details }) => ({ action, details: expect.objectContaining(details), user_id: ids.user })),
    )
  })
})

const guardedBuiltin = (name: string) => ({ type: 'builtin', name, policy: 'requires_approval' })
const postedStatus = async (target: { url: string; headers: Headers }, id: string): Promise<string> =>
  (await call(target.url, 'GET', `/v1/sessions/${id}/turns`, undefined, target.headers)).body.data[0].status

describe('a sign-in', () => {
  it('is told when it fails, at most ten times a minute', async () => {
    const { headers, ids } = owner
    const wrong = { email: ids.email, password: 'not the password' }
    expect((await call(service.url, 'POST', '/v1/auth/login', wrong, fromSomewhere())).status).toBe(401)
    const failed = () => readAudit(headers, '&action=user.sign_in_failed')
    await waitFor(async () => (await failed()).length === 1, 'the failed sign-in')
    expect(await failed()).toMatchObject([{ user_id: null, target_id: ids.user, target_type: 'user' }])
    const origin = { address: '192.0.2.1', requestId: 'guess' }
    for (let more = 0; more < 12; more++) await noteFailedSignIn(service.platform.deps, ids.user, origin)
    expect(await failed()).toHaveLength(10)
  })

  it('is told with its method, as is its end and a refresh token that comes again', async () => {
    const user = await registerUser(service.url)
    const refresh = () =>
      call(service.url, 'POST', '/v1/auth/refresh', { refresh_token: user.refreshToken }, fromSomewhere())
    expect([(await refresh()).status, (await refresh()).status]).toEqual([200, 401])
    const { headers } = await logInUser(service.url, user)
    await call(service.url, 'POST', '/v1/auth/logout', undefined, headers)
    const admin = await logInUser(service.url, ADMIN)
    expect(await readAudit(admin.headers, `&target_id=${user.id}`)).toMatchObject([
      { action: 'user.sign_out', details: {} },
      { action: 'user.sign_in', details: { method: 'password' } },
      { action: 'user.sign_out', details: { reason: 'refresh_token_reused' } },
      { action: 'user.sign_in', details: { method: 'password' } },
      { action: 'user.register' },
    ])
  })
})

const NOOP = { type: 'activity', name: 'noop' }

describe('an operation that fails', () => {
  it('leaves no entry', async () => {
    const { headers, ids } = owner
    const before = await readAudit(headers)
    const failing: [string, string, object?][] = [
      ['PATCH', `/v1/agents/${ids.agent}`, { default_model_id: 'model_00000000000000000000000000000000' }],
      ['DELETE', `/v1/skills/skill_${'0'.repeat(32)}`],
      ['POST', '/v1/durable/schedules', { name: ids.mark, cron_expression: '@yearly', target: NOOP }],
      ['DELETE', `/v1/orgs/${ids.organization}/members/${ids.user}`],
      ['POST', `/v1/sessions/${ids.session}/cancel`],
    ]
    for (const [method, path, body] of failing) {
      expect((await call(service.url, method, path, body, headers)).body).not.toHaveProperty('id')
    }
    expect(await readAudit(headers)).toEqual(before)
  })

  it('is every operation whose entry cannot be written', async () => {
    const { headers, ids } = owner
    const { db } = service.platform.deps
    const where = { id: toUuid(ids.agent) }
    const before = await db.agent.findFirst({ where })
    await db.$executeRawUnsafe(
      `ALTER TABLE audit_entries ADD CONSTRAINT refused CHECK (action <> 'agent.archive') NOT VALID`,
    )
    try {
      expect((await call(service.url, 'DELETE', `/v1/agents/${ids.agent}`, undefined, headers)).status).toBe(500)
    } finally {
      await db.$executeRawUnsafe('ALTER TABLE audit_entries DROP CONSTRAINT refused')
    }
    expect(await db.agent.findFirst({ where })).toEqual(before)
  })
})

describe('entries', () => {
  it('are pages newest first, filtered, and exported whole as lines', async () => {
    const { headers, ids } = owner
    for (let n = 0; n < 5; n++) {
      await call(service.url, 'PATCH', `/v1/agents/${ids.chosenAgent}`, { description: `${n}` }, headers)
    }
    const all = await readAudit(headers)
    const paged: Json[] = []
    for (
      let page = await readPage(headers, '');
      page.length > 0;
      page = await readPage(headers, `&before=${page.at(-1)?.id}`)
    )
      paged.push(...page)
    expect(paged).toEqual(all)
    expect(all.map(({ created_at }) => created_at)).toEqual(
      all
        .map(({ created_at }) => created_at)
        .sort()
        .reverse(),
    )
    const about = all.filter(({ target_id, action }) => target_id === ids.chosenAgent && action === 'agent.update')
    expect(about).toHaveLength(5)
    const [last] = about
    const filters = [
      `&action=agent.update&target_id=${ids.chosenAgent}`,
      `&action=agent.update&action=skill.delete&target_type=agent&user_id=${ids.user}&target_id=${ids.chosenAgent}`,
      `&target_id=${ids.chosenAgent}&from=${about.at(-1)?.created_at}`,
    ]
    for (const filter of filters) expect(await readAudit(headers, filter)).toEqual(about)
    expect(await readAudit(headers, `&to=${all.at(-1)?.created_at}`)).toEqual([])
    expect(await readAudit(headers, `&from=${last?.created_at}`)).toEqual([last])
    const accept = { ...headers, Accept: 'application/x-ndjson' }
    const exported = await send(service.url, { method: 'GET', path: '/v1/audit?limit=1', headers: accept })
    expect(exported.headers['content-type']).toBe('application/x-ndjson')
    expect(
      exported.body
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual(all)
  })

  it.each([
    ['action=agent.destroy', /^action/],
    ['target_type=cat', /^target_type/],
    ['target_id=agent_1', /^target_id/],
    ['user_id=1', /^user_id/],
    ['from=yesterday', /^from: must be a time/],
    ['before=first', /^before/],
    ['limit=0', /^limit/],
  ])('are refused with %s', async (query, sentence) => {
    const { headers } = await logInUser(service.url, ADMIN)
    expectError(await call(service.url, 'GET', `/v1/audit?${query}`, undefined, headers), 400, sentence)
  })

  it('do not change, and go when they are old', async () => {
    const { headers, ids } = owner
    const { deps } = service.platform
    const [newest, ...older] = await readAudit(headers)
    await expect(deps.db.auditEntry.updateMany({ data: { action: 'agent.create' } })).rejects.toThrow(/do not change/)
    await deps.db.$executeRaw`ALTER TABLE audit_entries DISABLE TRIGGER refuse_audit_update`
    await deps.db.$executeRaw`UPDATE audit_entries SET created_at = now() - interval '401 days'
      WHERE organization_id = ${toUuid(ids.organization)}::uuid AND id <> ${newest?.id}::uuid`
    await deps.db.$executeRaw`ALTER TABLE audit_entries ENABLE TRIGGER refuse_audit_update`
    await deleteExpired({ ...deps, retention: { ...deps.retention, auditMs: 0 } }, new AbortController().signal)
    expect(await readAudit(headers)).toHaveLength(older.length + 1)
    await deleteExpired(deps, new AbortController().signal)
    expect(await readAudit(headers)).toEqual([newest])
  })
})

const readPage = async (headers: Headers, query: string): Promise<Json[]> =>
  (await call(service.url, 'GET', `/v1/audit?limit=3${query}`, undefined, headers)).body.data
