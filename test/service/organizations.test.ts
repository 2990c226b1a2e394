import {
  ADMIN,
  ADMIN_VARIABLES,
  addOwnOrganization,
  FULL_MODE,
  logInUser,
  registerUser,
  type TestUser,
} from '../support/auth.ts'
import { call, expectError, expectQuota, type Json, unknownId } from '../support/http.ts'
import { startService, type TestService, withService } from '../support/service.ts'

const DEFAULT = 'org_00000000000000000000000000000001'

let service: TestService
let user: TestUser
let admin: TestUser
beforeAll(async () => {
  service = await startService({ worker: false, environment: { ...FULL_MODE, ...ADMIN_VARIABLES } })
  user = await registerUser(service.url)
  admin = await logInUser(service.url, ADMIN)
})
afterAll(() => service.stop())

const get = (path: string, headers: Record<string, string>) => call(service.url, 'GET', path, undefined, headers)
const post = (path: string, body: unknown, headers: Record<string, string>) =>
  call(service.url, 'POST', path, body, headers)
const patch = (id: string, body: unknown, headers: Record<string, string>) =>
  call(service.url, 'PATCH', `/v1/orgs/${id}`, body, headers)
const idsOf = (answer: { body: Json }): string[] => answer.body.data.map(({ id }: Json) => id)
const setRole = (userId: string, role: 'owner' | 'admin' | 'member') =>
  service.platform.deps.db.member.updateMany({ where: { userId }, data: { role } })

describe('an organization', () => {
  it('is owned by its creator, and by nobody else', async () => {
    const { status, body } = await post('/v1/orgs', { name: ' Acme ' }, user.headers)
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.stringMatching(/^org_[0-9a-f]{32}$/),
      name: 'Acme',
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    expect((await get(`/v1/orgs/${body.id}`, user.headers)).body).toEqual(body)
    expect(idsOf(await get('/v1/orgs', user.headers))).toEqual(expect.arrayContaining([DEFAULT, body.id]))
    const { body: me } = await get('/v1/auth/me', { ...user.headers, 'X-Org-Id': body.id })
    expect(me.roles).toEqual(['owner'])
    expect(me.organizations).toContainEqual({ public_id: body.id, name: 'Acme', role: 'owner' })

    const unknown = await get(`/v1/orgs/${unknownId('org')}`, admin.headers)
    expectError(unknown, 404, /^Organization not found$/)
    expect((await get(`/v1/orgs/${body.id}`, admin.headers)).body).toEqual(unknown.body)
    expect((await patch(body.id, { name: 'Mine' }, admin.headers)).body).toEqual(unknown.body)
    expect(idsOf(await get('/v1/orgs', admin.headers))).not.toContain(body.id)
  })

  it('is changed by owners and administrators only', async () => {
    const member = await registerUser(service.url)
    expectError(await patch(DEFAULT, { name: 'X' }, member.headers), 403, /owners and administrators/)
    await setRole(member.id, 'admin')
    const { status, body } = await patch(DEFAULT, { name: 'Renamed' }, member.headers)
    expect(status).toBe(200)
    expect(body.name).toBe('Renamed')
    expect(Date.parse(body.updated_at)).toBeGreaterThan(Date.parse(body.created_at))
    for (const nothing of [{}, { name: null }, { id: unknownId('org') }]) {
      expect((await patch(DEFAULT, nothing, admin.headers)).body).toEqual(body)
    }
  })

  it.each([{}, { name: '' }, { name: '  ' }, { name: 'ж'.repeat(128) }, { name: 1 }, { name: null }, [], 'x'])(
    'is not made of %j',
    async (body) => {
      expect((await post('/v1/orgs', body, user.headers)).status).toBe(400)
    },
  )

  it.each(['org_1', 'x', `ORG_${'0'.repeat(32)}`, `agent_${'0'.repeat(32)}`])('is not named %s', async (id) => {
    expectError(await get(`/v1/orgs/${id}`, user.headers), 400, /^org: must be org_/)
  })

  it('takes names of one byte and of 255', async () => {
    const owner = await registerUser(service.url)
    for (const name of ['x', `x${'ж'.repeat(127)}`]) {
      expect((await post('/v1/orgs', { name }, owner.headers)).body.name).toBe(name)
    }
  })

  it('is one of at most a hundred per owner, and all are listed', async () => {
    const owner = await registerUser(service.url)
    const { db } = service.platform.deps
    const owned = Array.from({ length: 95 }, () => ({ id: crypto.randomUUID(), name: 'X' }))
    await db.organization.createMany({ data: owned })
    await db.member.createMany({
      data: owned.map(({ id }) => ({ userId: owner.id, organizationId: id, role: 'owner' })),
    })
    const answers = await Promise.all(Array.from({ length: 20 }, () => post('/v1/orgs', { name: 'X' }, owner.headers)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(5)
    for (const answer of answers) if (answer.status !== 201) expectQuota(answer, /You own 100/)
    const ids = idsOf(await get('/v1/orgs', owner.headers))
    expect(ids[0]).toBe(DEFAULT)
    expect(new Set(ids).size).toBe(101)
  })

  it('is created once by a request with an Idempotency-Key', async () => {
    const owner = await registerUser(service.url)
    const headers = { ...owner.headers, 'Idempotency-Key': 'once' }
    const answers = await Promise.all(Array.from({ length: 6 }, () => post('/v1/orgs', { name: 'Once' }, headers)))
    expect(new Set(answers.map(({ status, body }) => JSON.stringify([status, body]))).size).toBe(1)
    expect(answers[0]?.status).toBe(201)
    expect(idsOf(await get('/v1/orgs', owner.headers))).toHaveLength(2)
  })
})

describe('the organization of a request', () => {
  it('is the header’s, else the cookie’s, else the user’s first', async () => {
    const [one, two] = [await addOwnOrganization(service.url, user), await addOwnOrganization(service.url, user)]
    const { body, headers: answered } = await post('/v1/users/me/switch-org', { org_id: one.id }, user.headers)
    expect(body).toEqual({ success: true, org_id: one.id })
    const [cookie] = answered.getSetCookie()
    expect(cookie).toMatch(new RegExp(`^org_id=${one.id}; path=/; expires=.*; samesite=lax; httponly$`))
    const where = async (headers: Record<string, string>) =>
      (await post('/v1/sessions', {}, { ...user.headers, ...headers })).body.organization_id
    expect(await where({})).toBe(DEFAULT)
    expect(await where({ Cookie: `org_id=${one.id}` })).toBe(one.id)
    expect(await where({ Cookie: `org_id=${one.id}`, 'X-Org-Id': two.id })).toBe(two.id)
  })

  it('is not found if the user is not a member', async () => {
    const { id } = await addOwnOrganization(service.url, admin)
    for (const org of [id, unknownId('org')]) {
      for (const [name, value] of Object.entries({ 'X-Org-Id': org, Cookie: `org_id=${org}` })) {
        const answer = await get('/v1/sessions', { ...user.headers, [name]: value })
        expectError(answer, 404, /^Organization not found$/)
      }
      expectError(await get('/v1/auth/me', { ...user.headers, 'X-Org-Id': org }), 404, /^Organization not found$/)
      expectError(await post('/v1/users/me/switch-org', { org_id: org }, user.headers), 404, /^Organization not found$/)
    }
  })

  it('can be switched even if the cookie is out of date', async () => {
    const stale = { ...user.headers, Cookie: `org_id=${unknownId('org')}` }
    expect((await get('/v1/auth/me', stale)).body.roles).toEqual(['member'])
    expect(idsOf(await get('/v1/orgs', stale))).toContain(DEFAULT)
    expect((await post('/v1/users/me/switch-org', { org_id: DEFAULT }, stale)).status).toBe(200)
  })

  it('is refused if it is not an id', async () => {
    expectError(await get('/v1/sessions', { ...user.headers, 'X-Org-Id': 'x' }), 400, /^X-Org-Id: must be org_/)
    expectError(await get('/v1/sessions', { ...user.headers, Cookie: 'org_id=x' }), 404, /^Organization not found$/)
    for (const org_id of ['x', 1, null]) {
      expectError(await post('/v1/users/me/switch-org', { org_id }, user.headers), 400, /^org_id: /)
    }
  })

  it('can be chosen in mode none too', async () => {
    await withService({ worker: false }, async ({ url }) => {
      const { body: own } = await call(url, 'POST', '/v1/orgs', { name: 'Second' })
      const session = await call(url, 'POST', '/v1/sessions', {}, { 'X-Org-Id': own.id })
      expect(session.body.organization_id).toBe(own.id)
      expect((await call(url, 'GET', `/v1/sessions/${session.body.id}`)).status).toBe(404)
      const unknown = await call(url, 'GET', '/v1/sessions', undefined, { 'X-Org-Id': unknownId('org') })
      expectError(unknown, 404, /^Organization not found$/)
    })
  })
})
