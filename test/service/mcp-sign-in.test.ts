import { readToken, replaceToken } from '../../domain/tools/mcp-servers/grants/token.ts'
import { addOwnOrganization, bearer, FULL_MODE, logInUser, registerUser, type TestUser } from '../support/auth.ts'
import { BASE_URL, type Browser, createBrowser, type Page } from '../support/browser.ts'
import {
  type Answer,
  call,
  createScriptedSession,
  expectError,
  type Json,
  listEvents,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { type ProtectedServer, signInThere, startProtectedServer } from '../support/protected-mcp-server.ts'
import { startService, type TestService } from '../support/service.ts'
import { post, postAndAsk, submit } from '../support/turns.ts'

const CALLBACK = `${BASE_URL}/v1/mcp-sign-in/callback`

let service: TestService
let server: ProtectedServer
/** Owner and member of one organization, with headers that act in it. */
let ada: TestUser
let ben: TestUser
beforeAll(async () => {
  server = await startProtectedServer()
  service = await startService({ environment: { ...FULL_MODE, ALLOW_PRIVATE_NETWORK: 'true' } })
  const [owner, member] = [await registerUser(service.url), await registerUser(service.url)]
  const own = await addOwnOrganization(service.url, owner)
  const invited = await call(service.url, 'POST', `/v1/orgs/${own.id}/invitations`, { role: 'member' }, own.headers)
  await call(service.url, 'POST', '/v1/orgs/join', { token: invited.body.token }, member.headers)
  ada = { ...owner, headers: own.headers }
  ben = { ...member, headers: { ...member.headers, 'X-Org-Id': own.id } }
})
afterAll(async () => {
  await service.stop()
  await server.stop()
})
afterEach(() => {
  Object.assign(server, {
    scope: 'tools',
    isWithdrawn: false,
    resource: server.url,
    redirectTo: undefined,
    onCall: async () => {},
  })
})

const ask = (who: TestUser, method: string, path: string, body?: unknown): Promise<Answer> =>
  call(service.url, method, path, body, who.headers)
const readServer = async (who: TestUser, id: string) => (await ask(who, 'GET', `/v1/mcp-servers/${id}`)).body

let number = 0
async function addServer(oauth: object): Promise<{ id: string; name: string }> {
  const name = `S${++number}`
  return { id: (await ask(ada, 'POST', '/v1/mcp-servers', { name, url: server.url, oauth })).body.id, name }
}

/** Browser in which a user is signed in here. */
async function browserOf(who: TestUser): Promise<Browser> {
  const browser = createBrowser(service)
  browser.cookies.set('access_token', (await logInUser(service.url, who)).accessToken)
  return browser
}

const begin = async (who: TestUser, id: string): Promise<Page> => {
  const { status, body } = await ask(who, 'POST', `/v1/mcp-servers/${id}/connect`)
  expect({ status, body }).toMatchObject({ status: 200 })
  return { url: '', status: 302, location: body.authorization_url, text: '', setCookies: [] }
}

/** Signs a user in at the server, under the account of the same name. Returns the address of the callback. */
async function connect(who: TestUser, id: string, account: string): Promise<string> {
  const browser = await browserOf(who)
  const callback = await signInThere(browser, await begin(who, id), account, CALLBACK)
  const done = await browser.open(callback)
  expect(done).toMatchObject({ status: 200, text: expect.stringContaining('You are signed in at S') })
  return callback
}

const untilRead = (id: string) =>
  waitFor(async () => (await readServer(ada, id)).tools_count !== null, 'the tools of the server')

/** Creates a session of a user with an agent that adds two numbers by the server, once for each turn. */
async function sessionOf(who: TestUser, { id, name }: { id: string; name: string }, turns = 1): Promise<string> {
  const step = { tool_calls: [{ id: 'sum', name: `mcp_${name.toLowerCase()}__get-sum`, arguments: { a: 2, b: 40 } }] }
  const steps = Array.from({ length: turns }, () => [step, { text: 'done' }]).flat()
  return createScriptedSession(service.url, steps, { capabilities: [{ ref: `mcp:${toUuid(id)}` }] }, {}, who.headers)
}

const target = (who: TestUser) => ({ url: service.url, headers: who.headers })
const resultsOf = async (who: TestUser, session: string): Promise<Json[]> =>
  (await listEvents(target(who), session)).filter(({ type }) => type === 'tool.completed').map(({ data }) => data)

async function runTurn(who: TestUser, session: string): Promise<Json> {
  await post(target(who), session)
  await waitUntilIdle(target(who), session)
  return (await resultsOf(who, session)).at(-1)
}

const SUM = { status: 'success', result: [{ type: 'text', text: expect.stringContaining('42') }] }

describe('signing in at an MCP server as the organization', () => {
  it('lets all turns use it, and keeps the tokens to itself', async () => {
    const added = await addServer({ as: 'organization' })
    expect(await readServer(ada, added.id)).toMatchObject({ oauth: { as: 'organization', connected: false } })
    await waitFor(async () => /Nobody has signed in/.test((await readServer(ada, added.id)).tools_error), 'the reason')
    expectError(await ask(ben, 'POST', `/v1/mcp-servers/${added.id}/connect`), 403, /^Only administrators/)
    await connect(ada, added.id, 'robot')
    await untilRead(added.id)
    expect(await readServer(ben, added.id)).toMatchObject({ oauth: { connected: true, client_id: null } })
    const session = await sessionOf(ben, added)
    expect(await runTurn(ben, session)).toMatchObject(SUM)
    expect(server.callers.at(-1)).toBe('robot')
    const audit = (await ask(ada, 'GET', `/v1/audit?target_id=${added.id}`)).body.data
    expect(audit[0]).toMatchObject({ action: 'mcp_server.connect', user_id: ada.id, details: { as: 'organization' } })
    expect((await ask(ada, 'DELETE', `/v1/mcp-servers/${added.id}/grant`)).status).toBe(204)
    expectError(await ask(ada, 'DELETE', `/v1/mcp-servers/${added.id}/grant`), 404, 'Grant not found')
    const [ended] = (await ask(ada, 'GET', `/v1/audit?target_id=${added.id}`)).body.data
    expect(ended).toMatchObject({ action: 'mcp_server.disconnect', user_id: ada.id })
    const other = await sessionOf(ben, added)
    expect(await runTurn(ben, other)).toMatchObject({
      status: 'error',
      error: expect.stringMatching(/an administrator can connect it/),
    })
  })

  it('refreshes tokens that end, once for all turns that need it', async () => {
    const added = await addServer({ as: 'organization' })
    await connect(ada, added.id, 'robot')
    await untilRead(added.id)
    const sessions = await Promise.all([1, 2, 3, 4].map(() => sessionOf(ben, added)))
    const before = server.grants.length
    server.endTokens()
    for (const result of await Promise.all(sessions.map((session) => runTurn(ben, session))))
      expect(result).toMatchObject(SUM)
    expect(server.grants.slice(before)).toEqual(['refresh_token'])
    const { db } = service.platform.deps
    await db.mcpGrant.updateMany({ where: { serverId: toUuid(added.id) }, data: { expiresAt: new Date() } })
    expect(await runTurn(ben, await sessionOf(ben, added))).toMatchObject(SUM)
    expect(server.grants.slice(before)).toEqual(['refresh_token', 'refresh_token'])
  })

  it('stays when new tokens take long, or come by another sign-in meanwhile', async () => {
    const added = await addServer({ as: 'organization' })
    await connect(ada, added.id, 'robot')
    await untilRead(added.id)
    const { deps } = service.platform
    const row = await deps.db.mcpServer.findFirstOrThrow({ where: { id: toUuid(added.id) } })
    const where = { serverId: row.id }
    const { holderId } = await deps.db.mcpGrant.findFirstOrThrow({ where })
    const { signal } = new AbortController()
    const first = await readToken(deps, row, holderId, signal)
    if (first === undefined) throw new Error('no token')
    const change = (data: object) => deps.db.mcpGrant.updateMany({ where, data })
    // Another process is at it.
    await change({ refreshingUntil: new Date(Date.now() + 60_000) })
    await expect(replaceToken(deps, row, holderId, first, signal, 300)).rejects.toThrow('did not answer in time')
    await change({ refreshingUntil: null })
    const db = deps.db.$extends({
      query: {
        mcpGrant: {
          updateMany: async ({ args, query }) => {
            await change({ revision: { increment: 1 } })
            return query(args)
          },
        },
      },
    })
    const elsewhere = await replaceToken({ ...deps, db: db as unknown as typeof deps.db }, row, holderId, first, signal)
    expect(elsewhere).toEqual({ ...first, revision: first.revision + 1 })
  })

  it('ends when the address or the client changes', async () => {
    const added = await addServer({ as: 'organization' })
    await connect(ada, added.id, 'robot')
    const change = (body: object) => ask(ada, 'PATCH', `/v1/mcp-servers/${added.id}`, body)
    expect((await change({ description: 'Same' })).body.oauth.connected).toBe(true)
    expect((await change({ oauth: { as: 'organization', scopes: ['tools'] } })).body.oauth.connected).toBe(false)
    await connect(ada, added.id, 'robot')
    expect((await change({ url: `${server.url}?other` })).body.oauth.connected).toBe(false)
    // A client's secret is for the authorization server that the address names.
    const client = { client_id: 'by-hand', client_secret: 'secret-of-a-test' }
    const kept = { as: 'organization', ...client, client_secret: '***' }
    expect((await change({ oauth: { as: 'organization', ...client } })).body.oauth.client_secret_set).toBe(true)
    expect((await change({ oauth: kept })).body.oauth).toMatchObject({ client_id: 'by-hand', client_secret_set: true })
    for (const body of [{}, { oauth: kept }]) {
      expectError(
        await change({ url: 'https://elsewhere.example/', ...body }),
        400,
        /^oauth: is required with another server/,
      )
    }
    expect((await change({ oauth: { as: 'none' } })).body.oauth).toBeNull()
    expectError(
      await ask(ada, 'POST', `/v1/mcp-servers/${added.id}/connect`),
      409,
      /does not sign in at this MCP server/,
    )
    expectError(await change({ oauth: { as: 'user' }, api_key: 'k' }), 400, /^api_key: must be empty with oauth/)
    expectError(
      await change({ oauth: { as: 'user', client_secret: 's' } }),
      400,
      'oauth.client_secret: needs a client_id',
    )
  })
})

describe('signing in at an MCP server as the user', () => {
  it('asks each user in a turn, and acts as the one who wrote its message', async () => {
    const added = await addServer({ as: 'user' })
    await connect(ada, added.id, 'ada')
    await untilRead(added.id)
    expect(await readServer(ada, added.id)).toMatchObject({ oauth: { connected: true } })
    expect(await readServer(ben, added.id)).toMatchObject({ oauth: { connected: false } })
    const session = await sessionOf(ben, added, 2)
    const { pending_tool_calls } = await postAndAsk(target(ben), session)
    const url = `${BASE_URL}/v1/mcp-servers/${added.id}/connect?org=${ben.headers['X-Org-Id']}`
    expect(pending_tool_calls).toMatchObject([{ name: 'mcp_elicitation', arguments: { url, tool_call_id: 'sum' } }])
    const browser = await browserOf(ben)
    const elsewhere = await browser.open(url.replace(/org_\w+$/, 'org_00000000000040008000000000000000'))
    expect(elsewhere).toMatchObject({ status: 404 })
    const callback = await signInThere(browser, await browser.open(url), 'ben', CALLBACK)
    expect((await browser.open(callback)).status).toBe(200)
    await submit(target(ben), session, [{ tool_call_id: pending_tool_calls[0].id, result: { action: 'accept' } }])
    await waitUntilIdle(target(ben), session)
    expect((await resultsOf(ben, session)).at(-1)).toMatchObject(SUM)
    expect(server.callers.at(-1)).toBe('ben')
    // The same session, and another author.
    expect(await runTurn(ada, session)).toMatchObject(SUM)
    expect(server.callers.at(-1)).toBe('ada')
    const grants = await service.platform.deps.db.mcpGrant.findMany({ where: { serverId: toUuid(added.id) } })
    expect(grants).toHaveLength(2)
    await ask(ada, 'DELETE', `/v1/orgs/${ada.headers['X-Org-Id']}/members/${ben.id}`)
    expect(await service.platform.deps.db.mcpGrant.count({ where: { userId: ben.id } })).toBe(0)
    const invited = await ask(ada, 'POST', `/v1/orgs/${ada.headers['X-Org-Id']}/invitations`, { role: 'member' })
    const { token } = invited.body
    const joined = await call(service.url, 'POST', '/v1/orgs/join', { token }, bearer(ben.accessToken))
    expect(joined.status).toBe(200)
  })

  it('reads prompts as the caller, and asks for a sign-in without one', async () => {
    const { id } = await addServer({ as: 'user' })
    const path = `/v1/mcp-servers/${id}/prompts`
    await connect(ada, id, 'ada')
    expectError(await ask(ben, 'GET', path), 409, new RegExp(`sign in by POST /v1/mcp-servers/${id}/connect$`))
    await connect(ben, id, 'ben')
    server.endTokens()
    const prompt = { name: 'args-prompt', arguments: { city: 'Berlin' } }
    for (const [who, account] of [
      [ada, 'ada'],
      [ben, 'ben'],
    ] as const) {
      expect(await ask(who, 'POST', `${path}/get`, prompt)).toMatchObject({ status: 200, body: { messages: [{}] } })
      expect(server.callers.at(-1)).toBe(account)
    }
    server.scope = 'tools more'
    expectError(await ask(ben, 'POST', `${path}/get`, prompt), 409, /with the scope tools more; sign in by POST/)
  })

  it('tells the model when the user declines', async () => {
    const added = await addServer({ as: 'user' })
    await connect(ada, added.id, 'ada')
    await untilRead(added.id)
    const session = await sessionOf(ben, added)
    const { pending_tool_calls } = await postAndAsk(target(ben), session)
    await submit(target(ben), session, [{ tool_call_id: pending_tool_calls[0].id, result: { action: 'decline' } }])
    await waitUntilIdle(target(ben), session)
    expect((await resultsOf(ben, session)).at(-1)).toMatchObject({
      status: 'error',
      error: expect.stringMatching(/did not sign in at the MCP server S/),
    })
  })

  it.each([
    ['a grant that is withdrawn between the calls of a turn', () => Object.assign(server, { isWithdrawn: true })],
    ['a scope that the token lacks', () => Object.assign(server, { scope: 'tools more' })],
  ])('asks again after %s, and goes on', async (_, change) => {
    const added = await addServer({ as: 'user' })
    await connect(ada, added.id, 'ada')
    await untilRead(added.id)
    const session = await sessionOf(ada, added)
    change()
    if (server.isWithdrawn) server.endTokens()
    const { pending_tool_calls } = await postAndAsk(target(ada), session)
    Object.assign(server, { isWithdrawn: false })
    await connect(ada, added.id, 'ada')
    await submit(target(ada), session, [{ tool_call_id: pending_tool_calls[0].id, result: { action: 'accept' } }])
    await waitUntilIdle(target(ada), session)
    expect((await resultsOf(ada, session)).at(-1)).toMatchObject(SUM)
  })

  it('keeps tokens out of events, and encrypted', async () => {
    const added = await addServer({ as: 'user' })
    await connect(ada, added.id, 'ada')
    await untilRead(added.id)
    let seen = ''
    server.onCall = async (token) => {
      seen = token.jti
    }
    const session = await sessionOf(ada, added)
    expect(await runTurn(ada, session)).toMatchObject(SUM)
    expect(seen).not.toBe('')
    expect(JSON.stringify(await listEvents(target(ada), session))).not.toContain(seen)
    const [grant] = await service.platform.deps.db.mcpGrant.findMany({ where: { serverId: toUuid(added.id) } })
    expect(Buffer.from(grant?.tokens ?? '').includes(seen)).toBe(false)
  })
})

describe('a callback', () => {
  it('works once, for a known state, in a browser of the user who began', async () => {
    const added = await addServer({ as: 'user' })
    const [own, others] = [await browserOf(ada), await browserOf(ben)]
    const callback = await signInThere(others, await begin(ada, added.id), 'ben', CALLBACK)
    for (const browser of [others, createBrowser(service)]) {
      const refused = await browser.open(callback)
      expect(refused).toMatchObject({ status: 401, text: expect.stringContaining('as the user who began') })
    }
    expect((await own.open(callback)).status).toBe(200)
    expect(await own.open(callback)).toMatchObject({ status: 401, text: expect.stringContaining('begin again') })
    const unknown = new URL(callback)
    for (const state of ['', 'nonsense', '00000000-0000-4000-8000-000000000000']) {
      unknown.searchParams.set('state', state)
      expect((await own.open(unknown.href)).status).toBe(401)
    }
  })

  it('is refused with another issuer, a refusal, and too late', async () => {
    const added = await addServer({ as: 'user' })
    const browser = await browserOf(ada)
    const callbackFor = async () => new URL(await signInThere(browser, await begin(ada, added.id), 'ada', CALLBACK))
    const other = await callbackFor()
    other.searchParams.set('iss', 'https://elsewhere.example')
    expect(await browser.open(other.href)).toMatchObject({
      status: 502,
      text: expect.stringContaining('The sign-in failed'),
    })
    const refused = await callbackFor()
    refused.searchParams.delete('code')
    refused.searchParams.set('error', 'access_denied')
    expect(await browser.open(refused.href)).toMatchObject({
      status: 400,
      text: expect.stringContaining('access_denied'),
    })
    const late = await callbackFor()
    await service.platform.deps.db.mcpGrant.updateMany({
      where: { serverId: toUuid(added.id) },
      data: { pendingUntil: new Date(0) },
    })
    expect((await browser.open(late.href)).status).toBe(401)
    expect(await readServer(ada, added.id)).toMatchObject({ oauth: { connected: false } })
  })

  it('is not reached when the server names another resource', async () => {
    const added = await addServer({ as: 'user' })
    server.resource = 'https://elsewhere.example/mcp'
    const answer = await ask(ada, 'POST', `/v1/mcp-servers/${added.id}/connect`)
    expectError(answer, 502, /^The sign-in failed: Protected resource https:\/\/elsewhere\.example\/mcp does not match/)
  })

  it('is not reached by a redirect, and a call does not follow one with its token', async () => {
    const added = await addServer({ as: 'organization' })
    await connect(ada, added.id, 'robot')
    await untilRead(added.id)
    const session = await sessionOf(ada, added)
    const grants = server.grants.length
    server.redirectTo = `${new URL(server.url).origin}/elsewhere`
    expectError(await ask(ada, 'POST', `/v1/mcp-servers/${added.id}/connect`), 502, /^The sign-in failed/)
    expect(await runTurn(ada, session)).toMatchObject({
      status: 'error',
      error: expect.stringMatching(/redirects are not followed/),
    })
    expect(server.grants).toHaveLength(grants)
  })
})
