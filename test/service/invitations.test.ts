import { createHash } from 'node:crypto'
import { DEFAULT_ORGANIZATION_UUID } from '../../domain/kit/ids.ts'
import { deleteExpired } from '../../domain/upkeep/retention.ts'
import {
  addOwnOrganization,
  bearer,
  createApiKey,
  FULL_MODE,
  newPassword,
  registerUser,
  type TestUser,
} from '../support/auth.ts'
import { type Answer, call, expectError, expectQuota, type Json } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { openPage } from '../support/join-page.ts'
import { startService, type TestService, withService } from '../support/service.ts'

const DAY_MS = 24 * 3_600_000
const UNKNOWN = `inv_${'0'.repeat(64)}`

let service: TestService
let owner: TestUser
let org: string
let path: string
beforeAll(async () => {
  service = await startService({ worker: false, environment: FULL_MODE })
  owner = await registerUser(service.url)
})
afterAll(() => service.stop())
beforeEach(async () => {
  org = (await addOwnOrganization(service.url, owner)).id
  path = `/v1/orgs/${org}/invitations`
})

type By = Pick<TestUser, 'headers'>
const send = (method: string, to: string, { headers }: By, body?: unknown, key?: string): Promise<Answer> =>
  call(service.url, method, to, body, { ...headers, ...(key === undefined ? {} : { 'Idempotency-Key': key }) })
const invite = (by: By, body: object, key?: string) => send('POST', path, by, body, key)
const join = (by: By, token: unknown) => send('POST', '/v1/orgs/join', by, { token })
const listed = async (by: By = owner): Promise<Json[]> => (await send('GET', path, by)).body.data
const db = () => service.platform.deps.db

/** Returns a new user with a role in the organization. */
async function newMember(role: string): Promise<TestUser> {
  const user = await registerUser(service.url)
  const { body } = await invite(owner, { role })
  expect((await join(user, body.token)).status).toBe(200)
  return user
}

describe('an invitation', () => {
  it('is shown once, stored as its SHA-256, and lets one user in with its role', async () => {
    const { status, body, headers } = await invite(owner, { role: 'admin' })
    expect(status).toBe(201)
    expect(headers.get('cache-control')).toBe('no-store')
    const { token, url, ...shown } = body
    expect(token).toMatch(/^inv_[0-9a-f]{64}$/)
    expect(url).toBe(`http://localhost:9300/join#${token}`)
    expect(shown).toMatchObject({ role: 'admin', created_by: owner.id })
    expect(Date.parse(shown.expires_at) - Date.parse(shown.created_at)).toBeGreaterThan(7 * DAY_MS - 60_000)
    expect(await listed()).toEqual([shown])
    const row = await db().invitation.findUniqueOrThrow({ where: { id: body.id } })
    expect(Buffer.from(row.hash)).toEqual(createHash('sha256').update(token).digest())

    const user = await registerUser(service.url)
    const joined = await join(user, token)
    expect(joined).toMatchObject({ status: 200, body: { id: org, name: 'Own', role: 'admin' } })
    expect(await listed(user)).toEqual([])
    expect((await send('GET', `/v1/orgs/${org}`, user)).status).toBe(200)
    for (const by of [user, await registerUser(service.url)])
      expectError(await join(by, token), 404, /^Invitation not found$/)
  })

  it('is made, seen and withdrawn by owners and administrators, for owners only by owners', async () => {
    const [admin, member, stranger] = [
      await newMember('admin'),
      await newMember('member'),
      await registerUser(service.url),
    ]
    const { body } = await invite(admin, { role: 'member' })
    expectError(await invite(admin, { role: 'owner' }), 403, /^Only owners/)
    expect((await invite(owner, { role: 'owner' })).status).toBe(201)
    expect(await listed(admin)).toHaveLength(2)
    const one = `${path}/${body.id}`
    for (const [method, to] of [
      ['POST', path],
      ['GET', path],
      ['DELETE', one],
    ] as const) {
      expectError(
        await send(method, to, member, method === 'POST' ? { role: 'member' } : undefined),
        403,
        /^Only owners and/,
      )
      expectError(
        await send(method, to, stranger, method === 'POST' ? { role: 'member' } : undefined),
        404,
        /^Organization not found$/,
      )
    }
    expect((await send('DELETE', one, admin)).status).toBe(204)
    expectError(await send('DELETE', one, admin), 404, /^Invitation not found$/)
    expectError(await join(stranger, body.token), 404, /^Invitation not found$/)
  })

  it('is neither made nor used by an API key, which may see it', async () => {
    const { key } = await createApiKey(service.url, { ...owner.headers, 'X-Org-Id': org })
    const { body } = await invite(owner, { role: 'member' })
    const asKey = { headers: bearer(key) }
    expectError(await invite(asKey, { role: 'member' }), 403, /sign in/)
    expectError(await join(asKey, body.token), 403, /sign in/)
    expectError(await send('DELETE', `${path}/${body.id}`, asKey), 403, /sign in/)
    expect(await listed(asKey)).toHaveLength(1)
  })

  it('stays when a member tries it', async () => {
    const member = await newMember('member')
    const { body } = await invite(owner, { role: 'owner' })
    expectError(await join(member, body.token), 409, /^You are a member of this organization already$/)
    expectError(await join(owner, body.token), 409)
    expect((await join(await registerUser(service.url), body.token)).body.role).toBe('owner')
  })

  it('is used by one of many who try at once', async () => {
    const { body } = await invite(owner, { role: 'member' })
    const users = await Promise.all(Array.from({ length: 6 }, () => registerUser(service.url)))
    const answers = await Promise.all([...users, ...users].map((user) => join(user, body.token)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const answer of answers) if (answer.status !== 200) expectError(answer, 404, /^Invitation not found$/)
    const members = await db().member.count({ where: { organizationId: toUuid(org) } })
    expect(members).toBe(2)
  })

  it('ends when it expires, is no longer listed, and is deleted later', async () => {
    const { body } = await invite(owner, { role: 'member', expires_in: 60 })
    expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBeLessThan(61_000)
    const other = await invite(owner, { role: 'member' })
    await db().invitation.update({ where: { id: body.id }, data: { expiresAt: new Date(Date.now() - 1000) } })
    expectError(await join(await registerUser(service.url), body.token), 404, /^Invitation not found$/)
    expect((await listed()).map(({ id }) => id)).toEqual([other.body.id])
    await deleteExpired(service.platform.deps, new AbortController().signal)
    expect(await db().invitation.findMany({ where: { id: { in: [body.id, other.body.id] } } })).toMatchObject([
      { id: other.body.id },
    ])
  })

  it('is shown again to the request that made it, from a record without its token', async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, () => invite(owner, { role: 'member' }, 'invited')))
    expect(new Set(answers.map(({ status, body }) => JSON.stringify([status, body]))).size).toBe(1)
    const { token } = answers[0]?.body ?? {}
    expect((await join(await registerUser(service.url), token)).status).toBe(200)
    expect((await invite(owner, { role: 'member' }, 'invited')).body.token).toBe(token)
    const kept = await db().idempotencyKey.findFirstOrThrow({ where: { key: 'invited' } })
    expect(kept.answer).not.toMatch(/inv_/)
    expectError(await invite(owner, { role: 'admin' }, 'invited'), 409, /^Idempotency-Key: /)
  })

  it('does not show a token that another secret has made', async () => {
    const { auth } = service.platform.deps
    const before = auth.apiKeySecret
    await invite(owner, { role: 'member' }, 'before')
    auth.apiKeySecret = new TextEncoder().encode('another secret of tests, as long as needed')
    try {
      expectError(await invite(owner, { role: 'member' }, 'before'), 409, /cannot be shown again; withdraw it/)
    } finally {
      auth.apiKeySecret = before
    }
  })

  it('keeps its request no longer than the request may be repeated', async () => {
    const { body } = await invite(owner, { role: 'member' }, 'old')
    const find = () => db().invitation.findUniqueOrThrow({ where: { id: body.id } })
    expect((await find()).requestId).not.toBeNull()
    await db().invitation.update({ where: { id: body.id }, data: { createdAt: new Date(Date.now() - 2 * DAY_MS) } })
    await deleteExpired(service.platform.deps, new AbortController().signal)
    expect((await find()).requestId).toBeNull()
  })

  it('is one of a hundred pending at most, however many are made at once', async () => {
    const row = { organizationId: toUuid(org), createdBy: owner.id, role: 'member' } as const
    const rows = Array.from({ length: 97 }, (_, index) => ({
      ...row,
      id: crypto.randomUUID(),
      hash: new Uint8Array(createHash('sha256').update(`${org}${index}`).digest()),
      expiresAt: new Date(Date.now() + (index < 2 ? -1000 : DAY_MS)),
    }))
    await db().invitation.createMany({ data: rows })
    const answers = await Promise.all(Array.from({ length: 8 }, () => invite(owner, { role: 'member' })))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(5)
    for (const answer of answers) if (answer.status !== 201) expectQuota(answer, /100 pending invitations/)
    const list = async (query: string) => (await send('GET', `${path}?${query}`, owner)).body.data.length
    expect([await list(''), await list('limit=1000'), await list('limit=50&offset=80')]).toEqual([20, 100, 20])
  })

  it('is for users of fewer than a thousand organizations', async () => {
    const user = await registerUser(service.url)
    const others = Array.from({ length: 999 }, () => ({ id: crypto.randomUUID(), name: 'X' }))
    await db().organization.createMany({ data: others })
    await db().member.createMany({
      data: others.map(({ id }) => ({ userId: user.id, organizationId: id, role: 'member' })),
    })
    const { body } = await invite(owner, { role: 'member' })
    expectQuota(await join(user, body.token), /1000 organizations/)
    await send('DELETE', `/v1/orgs/org_${DEFAULT_ORGANIZATION_UUID.replaceAll('-', '')}/members/${user.id}`, user)
    expect((await join(user, body.token)).status).toBe(200)
  })

  it.each<[object, RegExp]>([
    [{}, /^role: /],
    [{ role: 'root' }, /^role: /],
    [{ role: 'member', expires_in: 59 }, /^expires_in: must be at least 60 seconds/],
    [{ role: 'member', expires_in: 2_592_001 }, /^expires_in: must be at most 2592000 seconds/],
    [{ role: 'member', expires_in: 60.5 }, /^expires_in: /],
    [{ role: 'member', expires_in: '60' }, /^expires_in: /],
  ])('is not made with %j', async (body, sentence) => {
    expectError(await invite(owner, body), 400, sentence)
  })

  it.each([UNKNOWN, '', 'inv_', `ask_${'0'.repeat(64)}`, UNKNOWN.toUpperCase()])('is not found: %j', async (token) => {
    expectError(await join(owner, token), 404, /^Invitation not found$/)
  })

  it.each([undefined, null, 1, 'x'.repeat(201)])('has no token %j', async (token) => {
    expectError(await join(owner, token), 400, /^token: /)
  })
})

describe('the page of an invitation', () => {
  it('lets a user sign in and join, and keeps the token out of the history', async () => {
    const user = await registerUser(service.url)
    const { body } = await invite(owner, { role: 'admin' })
    const page = await openPage(service.url, new URL(body.url))
    expect([page.output(), page.isHidden('form'), page.history]).toEqual(['', false, ['/join']])
    await page.submit('auth/login', { email: user.email, password: 'wrong password', name: '' })
    expect(page.output()).toBe('The e-mail or the password is wrong')
    await page.submit('auth/login', { email: user.email, password: user.password, name: '' })
    expect([page.output(), page.isHidden('form'), page.isHidden('#console')]).toEqual([
      'You are now a member of Own.',
      true,
      false,
    ])
    expect([...page.stored]).toEqual([['console.organization', org]])
    expect((await send('GET', path, user)).status).toBe(200)
    await page.click()
    expect(page.output()).toBe('Invitation not found')
  })

  it('lets a new user register', async () => {
    const { body } = await invite(owner, { role: 'member' })
    const page = await openPage(service.url, new URL(body.url))
    await page.submit('auth/register', {
      email: `${crypto.randomUUID()}@example.com`,
      password: newPassword(),
      name: 'New',
    })
    expect(page.output()).toBe('You are now a member of Own.')
  })

  it('works under a prefix and behind /api, loads nothing from elsewhere and cannot be framed', async () => {
    await withService({ worker: false, environment: { API_PREFIX: '/prefix' } }, async ({ url }) => {
      const { body: organization } = await call(url, 'POST', '/prefix/v1/orgs', { name: 'Own' })
      const made = await call(url, 'POST', `/prefix/v1/orgs/${organization.id}/invitations`, { role: 'member' })
      const page = await openPage(url, new URL(made.body.url))
      await page.click()
      expect(page.output()).toBe('You are a member of this organization already')
      const answer = await fetch(`${url}/api/join/`)
      expect(answer.url).toBe(`${url}/api/join`)
      expect(answer.headers.get('content-security-policy')).toMatch(/^default-src 'none';.*frame-ancestors 'none'/)
      expect([...(await answer.text()).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => link)).toEqual([
        'join/style.css',
        'console',
        'join/start.js',
      ])
    })
  })
})

describe('in mode none', () => {
  it('invitations can be made for later, and the anonymous user stays', async () => {
    await withService({ worker: false }, async ({ url }) => {
      const { body: organization } = await call(url, 'POST', '/v1/orgs', { name: 'Second' })
      const made = await call(url, 'POST', `/v1/orgs/${organization.id}/invitations`, { role: 'owner' })
      expect(made.status).toBe(201)
      expectError(await call(url, 'POST', '/v1/orgs/join', { token: made.body.token }), 409, /member .* already/)
      const me = `members/${(await call(url, 'GET', '/v1/auth/me')).body.id}`
      expectError(await call(url, 'DELETE', `/v1/orgs/${organization.id}/${me}`), 409, /needs an owner/)
      const standard = `/v1/orgs/org_${DEFAULT_ORGANIZATION_UUID.replaceAll('-', '')}`
      expectError(await call(url, 'DELETE', `${standard}/${me}`), 409, /^Without sign-in everybody is this user/)
      expectError(await call(url, 'PATCH', `${standard}/${me}`, { role: 'member' }), 409, /^Without sign-in/)
      expect((await call(url, 'GET', `${standard}/members`)).body.data).toHaveLength(1)
    })
  })
})
