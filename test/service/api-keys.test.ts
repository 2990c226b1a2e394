import { createHash, randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { createApiKey as makeApiKey, presentCreatedKey } from '../../domain/identity/auth/api-keys.ts'
import { DEFAULT_ORGANIZATION_UUID } from '../../domain/kit/ids.ts'
import { deleteExpired } from '../../domain/upkeep/retention.ts'
import { addOwnOrganization, bearer, createApiKey, FULL_MODE, registerUser, type TestUser } from '../support/auth.ts'
import { ANYBODY } from '../support/by-hand.ts'
import { call, createSession, expectError, expectQuota, type Json, waitFor } from '../support/http.ts'
import { startService, type TestService, withService } from '../support/service.ts'

let service: TestService
let user: TestUser
beforeAll(async () => {
  service = await startService({ worker: false, environment: FULL_MODE })
  user = await registerUser(service.url)
})
afterAll(() => service.stop())

const post = (body: unknown, headers: Record<string, string>) =>
  call(service.url, 'POST', '/v1/auth/api-keys', body, headers)
const list = async (headers: Record<string, string>): Promise<Json[]> =>
  (await call(service.url, 'GET', '/v1/auth/api-keys', undefined, headers)).body.data
const revoke = (id: string, headers: Record<string, string>) =>
  call(service.url, 'DELETE', `/v1/auth/api-keys/${id}`, undefined, headers)
const me = (headers: Record<string, string>) => call(service.url, 'GET', '/v1/auth/me', undefined, headers)
const unlimited = { scopes: [], expires_at: null, last_used_at: null }

describe('an API key', () => {
  it('is shown once, stored as its SHA-256, and stands for its user', async () => {
    const { status, body, headers } = await post({ name: ' CI ' }, user.headers)
    expect(status).toBe(201)
    expect(body).toMatchObject({ name: 'CI', ...unlimited, key: expect.stringMatching(/^ask_[0-9a-f]{64}$/) })
    expect(body.key_prefix).toBe(body.key.slice(0, 12))
    expect(headers.get('cache-control')).toBe('no-store')
    const { key, ...shown } = body
    expect(await list(user.headers)).toContainEqual(shown)
    const row = await service.platform.deps.db.apiKey.findUniqueOrThrow({ where: { id: body.id } })
    expect(Buffer.from(row.hash)).toEqual(createHash('sha256').update(key).digest())
    for (const value of [`Bearer ${key}`, `ApiKey ${key}`, `apikey ${key}`, key]) {
      expect((await me({ Authorization: value })).body.id).toBe(user.id)
    }
  })

  it('says when it was used last', async () => {
    const { id, key } = await createApiKey(service.url, user.headers)
    const lastUsed = async () => (await list(user.headers)).find((each) => each.id === id).last_used_at
    expect(await lastUsed()).toBeNull()
    await me(bearer(key))
    const first = await lastUsed()
    expect(Date.parse(first)).toBeGreaterThan(Date.now() - 300_000)
    await me(bearer(key))
    expect(await lastUsed()).toBe(first)
    const { db } = service.platform.deps
    await db.apiKey.update({ where: { id }, data: { lastUsedAt: new Date(Date.parse(first) - 120_000) } })
    await me(bearer(key))
    expect(Date.parse(await lastUsed())).toBeGreaterThanOrEqual(Date.parse(first))
  })

  it('fails at once when it is revoked, in every process', async () => {
    const { id, key } = await createApiKey(service.url, user.headers)
    const peer = await service.startPeer()
    const use = (url: string) => call(url, 'GET', '/v1/auth/me', undefined, bearer(key))
    expect((await use(peer.url)).status).toBe(200)
    expect((await revoke(id, user.headers)).status).toBe(204)
    for (const url of [service.url, peer.url]) expectError(await use(url), 401, /^Authentication required$/)
    expectError(await revoke(id, user.headers), 404, /^API key not found$/)
  })

  it('ends when it expires', async () => {
    const { body } = await post({ name: 'X', expires_in_days: 1 }, user.headers)
    expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBeGreaterThan(23 * 3600_000)
    expect((await me(bearer(body.key))).status).toBe(200)
    await service.platform.deps.db.apiKey.update({ where: { id: body.id }, data: { expiresAt: new Date() } })
    expect((await me(bearer(body.key))).status).toBe(401)
  })

  it('acts in one organization, whatever a request names', async () => {
    const own = await addOwnOrganization(service.url, user)
    const { key } = await createApiKey(service.url, own.headers)
    const headers = { ...bearer(key), 'X-Org-Id': 'org_00000000000000000000000000000001' }
    const { body } = await me(headers)
    expect(body).toMatchObject({ roles: ['owner'], organizations: [{ public_id: own.id }] })
    expect(body.organizations).toHaveLength(1)
    const session = await call(service.url, 'POST', '/v1/sessions', {}, headers)
    expect(session.body.organization_id).toBe(own.id)
    const orgs = await call(service.url, 'GET', '/v1/orgs', undefined, headers)
    expect(orgs.body.data.map(({ id }: Json) => id)).toEqual([own.id])
    const other = await call(service.url, 'GET', '/v1/orgs/org_00000000000000000000000000000001', undefined, headers)
    expectError(other, 404, /^Organization not found$/)
    expect(await list(user.headers)).not.toContainEqual(expect.objectContaining({ key_prefix: key.slice(0, 12) }))
  })

  it('ends with its user’s membership', async () => {
    const own = await addOwnOrganization(service.url, user)
    const { key } = await createApiKey(service.url, own.headers)
    await service.platform.deps.db.organization.deleteMany({
      where: { name: 'Own', members: { some: { userId: user.id } } },
    })
    expect((await me(bearer(key))).status).toBe(401)
  })

  it('cannot create or revoke keys', async () => {
    const { id, key } = await createApiKey(service.url, user.headers)
    expectError(await post({ name: 'X' }, bearer(key)), 403, /sign in/)
    expectError(await revoke(id, bearer(key)), 403, /sign in/)
    expectError(await call(service.url, 'POST', '/v1/orgs', { name: 'X' }, bearer(key)), 403, /sign in/)
  })

  it('cannot be seen or revoked by others', async () => {
    const { id } = await createApiKey(service.url, user.headers)
    const other = await registerUser(service.url)
    expect(await list(other.headers)).toEqual([])
    expectError(await revoke(id, other.headers), 404, /^API key not found$/)
    expect((await list(user.headers)).map((each) => each.id)).toContain(id)
  })

  it.each<[object, RegExp]>([
    [{}, /^name: /],
    [{ name: '' }, /^name: must not be empty/],
    [{ name: 'x'.repeat(256) }, /^name: must be at most 255 bytes/],
    [{ name: 'X', scopes: 'read' }, /^scopes: /],
    [{ name: 'X', scopes: ['read', 'root'] }, /^scopes: must be of read, write, agents:read.*, not "root"$/],
    [{ name: 'X', scopes: Array(51).fill('read') }, /^scopes: must have at most 50/],
    [{ name: 'X', expires_in_days: 0 }, /^expires_in_days: /],
    [{ name: 'X', expires_in_days: 1.5 }, /^expires_in_days: /],
    [{ name: 'X', expires_in_days: 1e9 }, /^expires_in_days: must be at most 3650/],
  ])('is refused with %j', async (body, sentence) => {
    expectError(await post(body, user.headers), 400, sentence)
  })

  it('can be left without limits by null', async () => {
    const { status, body } = await post({ name: 'X', scopes: null, expires_in_days: null }, user.headers)
    expect(status).toBe(201)
    expect(body).toMatchObject(unlimited)
  })

  it('is one of a hundred at most, however many are made at once', async () => {
    const busy = await registerUser(service.url)
    const { db } = service.platform.deps
    const owner = { userId: busy.id, organizationId: DEFAULT_ORGANIZATION_UUID, name: 'X', prefix: 'ask_00000000' }
    const rows = Array.from({ length: 95 }, () => ({
      ...owner,
      id: crypto.randomUUID(),
      hash: new Uint8Array(randomBytes(32)),
    }))
    await db.apiKey.createMany({ data: rows })
    const answers = await Promise.all(Array.from({ length: 20 }, () => post({ name: 'X' }, busy.headers)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(5)
    for (const answer of answers) if (answer.status !== 201) expectQuota(answer, /100 API keys/)
    expect(await list(busy.headers)).toHaveLength(100)
  })
})

describe('scopes', () => {
  it('let a key do what they name, and nothing else', async () => {
    const session = await createSession(service.url, undefined, {}, user.headers)
    const attempts = {
      'sessions:read': { method: 'GET', path: `/v1/sessions/${session}` },
      'sessions:write': { method: 'PATCH', path: `/v1/sessions/${session}`, body: { title: 'X' } },
      'agents:read': { method: 'GET', path: '/v1/agents' },
      'agents:write': { method: 'POST', path: '/v1/agents', body: { name: 'X', system_prompt: 'X' } },
    }
    const done = async (scopes: string[]) => {
      const { key } = await createApiKey(service.url, user.headers, { scopes })
      const allowed: string[] = []
      for (const [name, { method, path, ...rest }] of Object.entries(attempts)) {
        const answer = await call(service.url, method, path, 'body' in rest ? rest.body : undefined, bearer(key))
        if (answer.status < 300) allowed.push(name)
        else expectError(answer, 403, `The API key's scopes do not allow this; it would need ${name}`)
      }
      return allowed
    }
    expect(await done([])).toEqual(Object.keys(attempts))
    expect(await done(['write'])).toEqual(Object.keys(attempts))
    expect(await done(['read'])).toEqual(['sessions:read', 'agents:read'])
    expect(await done(['sessions:read'])).toEqual(['sessions:read'])
    expect(await done(['sessions:write'])).toEqual(['sessions:read', 'sessions:write'])
    expect(await done(['sessions:read', 'agents:write'])).toEqual(['sessions:read', 'agents:read', 'agents:write'])
    expect(await done(['users:read'])).toEqual([])
  })
})

describe('a request with an Idempotency-Key', () => {
  it('creates one key, and repeats the answer without storing the key', async () => {
    const headers = { ...user.headers, 'Idempotency-Key': crypto.randomUUID() }
    const answers = await Promise.all(Array.from({ length: 8 }, () => post({ name: 'Once' }, headers)))
    answers.push(await post({ name: 'Once' }, headers))
    expect(new Set(answers.map(({ status, body }) => JSON.stringify([status, body]))).size).toBe(1)
    const { key } = answers[0]?.body ?? {}
    expect((await me(bearer(key))).body.id).toBe(user.id)
    expect((await list(user.headers)).filter(({ name }) => name === 'Once')).toHaveLength(1)
    expectError(await post({ name: 'Another' }, headers), 409, /Idempotency-Key/)
    const { db } = service.platform.deps
    const kept = JSON.stringify([await db.idempotencyKey.findMany(), await db.apiKey.findMany()])
    expect(kept).not.toContain(key)
    expect(kept).not.toContain(key.slice(4))
  })

  it('creates one key even if the first answer was lost', async () => {
    const headers = { ...user.headers, 'Idempotency-Key': crypto.randomUUID() }
    const { body: first } = await post({ name: 'Lost' }, headers)
    const { db } = service.platform.deps
    await db.idempotencyKey.updateMany({ where: { key: headers['Idempotency-Key'] }, data: { answer: null } })
    expect((await post({ name: 'Lost' }, headers)).body).toEqual(first)
  })

  it('is refused if the secret has changed since', async () => {
    const headers = { ...user.headers, 'Idempotency-Key': crypto.randomUUID() }
    const { body } = await post({ name: 'Rotated' }, headers)
    const { auth } = service.platform.deps
    const secret = auth.apiKeySecret
    auth.apiKeySecret = Buffer.from('another')
    expectError(await post({ name: 'Rotated' }, headers), 409, /cannot be shown again/)
    auth.apiKeySecret = secret
    expect((await post({ name: 'Rotated' }, headers)).body).toEqual(body)
  })

  it('leaves no data from which its key could be derived', async () => {
    const { db } = service.platform.deps
    const { body } = await post({ name: 'Old' }, { ...user.headers, 'Idempotency-Key': crypto.randomUUID() })
    const seedOf = async () => (await db.apiKey.findUniqueOrThrow({ where: { id: body.id } })).requestId
    const expire = () => deleteExpired(service.platform.deps, new AbortController().signal)
    await expire()
    expect(await seedOf()).toEqual(expect.any(String))
    await db.apiKey.update({ where: { id: body.id }, data: { createdAt: new Date(Date.now() - 25 * 3600_000) } })
    await expire()
    expect(await seedOf()).toBeNull()
    expect((await me(bearer(body.key))).status).toBe(200)
  })
})

describe('a credential that ends while a request is on its way', () => {
  it('creates no key that would outlive the login', async () => {
    const { db, auth } = service.platform.deps
    const leaving = await registerUser(service.url)
    const { loginId = '' } = (await auth.tokens.readAccess(leaving.accessToken)) ?? {}
    const actor = {
      userId: leaving.id,
      organizationId: DEFAULT_ORGANIZATION_UUID,
      role: 'member',
      apiKeyId: null,
    } as const
    const make = () => makeApiKey(service.platform.deps, actor, { name: 'X' }, { loginId })
    expect((await make()).apiKey.name).toBe('X')
    await db.refreshToken.deleteMany({ where: { userId: leaving.id } })
    await expect(make()).rejects.toThrow('Authentication required')
  })

  it('does nothing more, however slowly the body arrives', async () => {
    const { id, key } = await createApiKey(service.url, user.headers)
    const body = JSON.stringify({ title: 'Late' })
    const { hostname, port } = new URL(service.url)
    const socket = connect(Number(port), hostname)
    const headers = {
      Host: 'x',
      'Content-Type': 'application/json',
      'Content-Length': body.length,
      Connection: 'close',
    }
    const lines = Object.entries({ ...headers, ...bearer(key) }).map(([name, value]) => `${name}: ${value}`)
    socket.write(`POST /v1/sessions HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body.slice(0, 3)}`)
    const answer = text(socket)
    // Only this request has used the key. Once last_used_at is set, the request has been authenticated.
    const hasBeenUsed = async () => (await list(user.headers)).some((each) => each.id === id && each.last_used_at)
    await waitFor(hasBeenUsed, 'the use of the key')
    expect((await revoke(id, user.headers)).status).toBe(204)
    // If a body takes longer than 2 s, its credential is checked again.
    await new Promise((resolve) => setTimeout(resolve, 3000))
    socket.write(body.slice(3))
    expect(await answer).toMatch(/^HTTP\/1.1 401 /)
    expect(await service.platform.deps.db.session.count({ where: { title: 'Late' } })).toBe(0)
  })
})

describe('mode none', () => {
  it('creates keys that are invalid in other modes', async () => {
    const { deps } = service.platform
    const { apiKey, seed } = await makeApiKey(deps, ANYBODY, { name: 'X' }, { loginId: undefined })
    const { key } = presentCreatedKey(deps, { apiKey, seed })
    expectError(await me(bearer(key)), 401, /^Authentication required$/)
  })

  it('has API keys too, although they are not needed', async () => {
    await withService({ worker: false }, async ({ url }) => {
      const { key } = await createApiKey(url, {})
      expect((await call(url, 'GET', '/v1/auth/me', undefined, bearer(key))).body.email).toBe('anonymous@local')
    })
  })
})
