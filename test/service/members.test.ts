import pg from 'pg'
import { ADMIN, addOwnOrganization, createApiKey, logInUser, registerUser, type TestUser } from '../support/auth.ts'
import { type Answer, call, expectError, type Json, waitFor } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { type Addresses, query, sharedService } from '../support/shared/service.ts'

const DEFAULT = 'org_00000000000000000000000000000001'
type Role = 'owner' | 'admin' | 'member'

let service: Addresses
beforeAll(async () => {
  service = await sharedService('full')
})

const send = (method: string, path: string, { headers }: Pick<TestUser, 'headers'>, body?: unknown): Promise<Answer> =>
  call(service.url, method, path, body, headers)

/** An organization with a member of each role and one more owner, made through invitations. */
async function newTeam() {
  const owner = await registerUser(service.url)
  const { id } = await addOwnOrganization(service.url, owner)
  const join = async (role: Role): Promise<TestUser> => {
    const user = await registerUser(service.url)
    const { body } = await send('POST', `/v1/orgs/${id}/invitations`, owner, { role })
    expect((await send('POST', '/v1/orgs/join', user, { token: body.token })).status).toBe(200)
    return user
  }
  const team = { owner, second: await join('owner'), admin: await join('admin'), member: await join('member') }
  const path = (user: Pick<TestUser, 'id'>) => `/v1/orgs/${id}/members/${user.id}`
  return {
    ...team,
    id,
    join,
    patch: (by: TestUser, user: TestUser, role: Role) => send('PATCH', path(user), by, { role }),
    remove: (by: TestUser, user: Pick<TestUser, 'id'>) => send('DELETE', path(user), by),
    list: async (by: TestUser): Promise<Json[]> => (await send('GET', `/v1/orgs/${id}/members`, by)).body.data,
  }
}

const rolesOf = (members: Json[]): Record<string, Role> =>
  Object.fromEntries(members.map(({ user_id, role }) => [user_id, role]))

describe('the members of an organization', () => {
  it('are listed for every member, the newest first, and for nobody else', async () => {
    const team = await newTeam()
    const { owner, second, admin, member } = team
    const members = await team.list(member)
    expect(members.map(({ user_id, role }) => [user_id, role])).toEqual([
      [member.id, 'member'],
      [admin.id, 'admin'],
      [second.id, 'owner'],
      [owner.id, 'owner'],
    ])
    expect(members[0]).toEqual({
      ...{ user_id: member.id, email: member.email, name: 'A user', avatar_url: null, role: 'member' },
      joined_at: expect.any(String),
    })
    const part = await send('GET', `/v1/orgs/${team.id}/members?limit=2&offset=1`, owner)
    expect(part.body.data).toEqual(members.slice(1, 3))
    const stranger = await registerUser(service.url)
    expectError(await send('GET', `/v1/orgs/${team.id}/members`, stranger), 404, /^Organization not found$/)
    expectError(await team.patch(stranger, member, 'admin'), 404, /^Organization not found$/)
    expectError(await team.remove(stranger, member), 404, /^Organization not found$/)
  })

  it('do not include the anonymous user where users sign in', async () => {
    const admin = await logInUser(service.url, ADMIN)
    const anonymous = '00000000-0000-0000-0000-000000000001'
    const path = `/v1/orgs/${DEFAULT}/members`
    // The oldest member is last.
    const { body } = await send('GET', `${path}?limit=100`, admin)
    expect(body.data.map(({ user_id }: Json) => user_id)).not.toContain(anonymous)
    expectError(await send('DELETE', `${path}/${anonymous}`, admin), 404, /^Member not found$/)
    expectError(await send('PATCH', `${path}/${anonymous}`, admin, { role: 'member' }), 404, /^Member not found$/)
  })

  it.each([{}, { role: null }, { role: 'root' }, { role: ['owner'] }, [], 'x'])('have no role %j', async (body) => {
    const owner = await registerUser(service.url)
    const { id } = await addOwnOrganization(service.url, owner)
    expectError(await send('PATCH', `/v1/orgs/${id}/members/${owner.id}`, owner, body), 400)
  })
})

describe('a role', () => {
  it('is given by owners, and except for owner by administrators', async () => {
    const team = await newTeam()
    const { owner, second, admin, member } = team
    expectError(await team.patch(member, member, 'admin'), 403, /owners and administrators/)
    expectError(await team.patch(admin, member, 'owner'), 403, /^Only owners/)
    expectError(await team.patch(admin, admin, 'owner'), 403, /^Only owners/)
    for (const role of ['admin', 'member', 'owner'] as const)
      expectError(await team.patch(admin, second, role), 403, /^Only owners/)
    const promoted = await team.patch(admin, member, 'admin')
    expect(promoted).toMatchObject({ status: 200, body: { user_id: member.id, role: 'admin' } })
    expect((await team.patch(member, admin, 'member')).body.role).toBe('member')
    expectError(await team.patch(admin, member, 'member'), 403, /owners and administrators/)
    expect((await team.patch(owner, admin, 'owner')).body.role).toBe('owner')
    expect(rolesOf(await team.list(owner))).toEqual({
      [owner.id]: 'owner',
      [second.id]: 'owner',
      [admin.id]: 'owner',
      [member.id]: 'admin',
    })
    expectError(await team.patch(owner, await registerUser(service.url), 'admin'), 404, /^Member not found$/)
  })

  it('takes with it the invitations that it no longer allows', async () => {
    const team = await newTeam()
    const { owner, second } = team
    const path = `/v1/orgs/${team.id}/invitations`
    for (const role of ['owner', 'admin', 'member']) await send('POST', path, second, { role })
    const left = async () => (await send('GET', path, owner)).body.data.map(({ role }: Json) => role)
    await team.patch(owner, second, 'admin')
    expect(await left()).toEqual(['member', 'admin'])
    await team.patch(owner, second, 'member')
    expect(await left()).toEqual([])
  })

  it('is not changed by an API key', async () => {
    const { owner, member, id, ...team } = await newTeam()
    const { key } = await createApiKey(service.url, { ...owner.headers, 'X-Org-Id': id })
    const asKey = { ...owner, headers: { Authorization: `Bearer ${key}` } }
    expect((await send('GET', `/v1/orgs/${id}/members`, asKey)).body.data).toHaveLength(4)
    expectError(await team.patch(asKey, member, 'admin'), 403, /sign in/)
    expectError(await team.remove(asKey, member), 403, /sign in/)
  })
})

describe('a member', () => {
  it('is removed by owners and administrators, an owner only by owners', async () => {
    const team = await newTeam()
    const { owner, second, admin, member } = team
    expectError(await team.remove(member, admin), 403, /owners and administrators/)
    expectError(await team.remove(admin, second), 403, /^Only owners/)
    expect((await team.remove(admin, member)).status).toBe(204)
    expectError(await team.remove(admin, member), 404, /^Member not found$/)
    expect((await team.remove(admin, await team.join('admin'))).status).toBe(204)
    expect((await team.remove(owner, second)).status).toBe(204)
    expect(Object.keys(rolesOf(await team.list(owner))).sort()).toEqual([owner.id, admin.id].sort())
  })

  it('may leave, and in a browser no longer chooses the organization', async () => {
    const team = await newTeam()
    const { member, admin, id } = team
    const path = `/v1/orgs/${id}/members/${member.id}`
    const left = await call(service.url, 'DELETE', path, undefined, { ...member.headers, Cookie: `org_id=${id}` })
    expect(left.status).toBe(204)
    expect(left.headers.getSetCookie()).toEqual([expect.stringMatching(/^org_id=; path=\/; expires=Thu, 01 Jan 1970/)])
    expect((await team.remove(admin, admin)).status).toBe(204)
    expectError(await send('GET', `/v1/orgs/${id}`, admin), 404, /^Organization not found$/)
  })

  it('who is removed has nothing there any more, at once', async () => {
    const team = await newTeam()
    const { owner, admin, id } = team
    const inside = { ...admin.headers, 'X-Org-Id': id }
    const { key } = await createApiKey(service.url, inside)
    const outside = await createApiKey(service.url, admin.headers)
    const { body } = await send('POST', `/v1/orgs/${id}/invitations`, admin, { role: 'admin' })
    const sessions = (headers: Record<string, string>) => call(service.url, 'GET', '/v1/sessions', undefined, headers)
    expect((await sessions(inside)).status).toBe(200)
    expect((await team.remove(owner, admin)).status).toBe(204)
    expectError(await sessions({ Authorization: `Bearer ${key}` }), 401)
    expectError(await sessions(inside), 404, /^Organization not found$/)
    expectError(await sessions({ ...admin.headers, Cookie: `org_id=${id}` }), 404, /^Organization not found$/)
    expect((await sessions({ Authorization: `Bearer ${outside.key}` })).status).toBe(200)
    // Otherwise somebody who is removed could let themselves in again.
    expectError(await send('POST', '/v1/orgs/join', admin, { token: body.token }), 404, /^Invitation not found$/)
    expect((await send('GET', `/v1/orgs/${id}/invitations`, owner)).body.data).toEqual([])
  })

  it('who is removed while making an API key gets none', async () => {
    const { member, id } = await newTeam()
    const of = 'WHERE user_id = $1 AND organization_id = $2'
    const ids = [member.id, toUuid(id)]
    const database = new pg.Client({ connectionString: service.database })
    await database.connect()
    await database.query('BEGIN')
    await database.query(`DELETE FROM members ${of}`, ids)
    const made = call(service.url, 'POST', '/v1/auth/api-keys', { name: 'Key' }, { ...member.headers, 'X-Org-Id': id })
    const isWaiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
    await waitFor(async () => (await query(service.database, isWaiting, [])).length > 0, 'the key to wait')
    await database.query('COMMIT')
    await database.end()
    expectError(await made, 404, /^Organization not found$/)
  })

  it('of no organization any more can still create one, join one and sign out', async () => {
    const user = await registerUser(service.url)
    const { id, owner } = await newTeam()
    const { body: invitation } = await send('POST', `/v1/orgs/${id}/invitations`, owner, { role: 'admin' })
    expect((await send('DELETE', `/v1/orgs/${DEFAULT}/members/${user.id}`, user)).status).toBe(204)
    expectError(await send('GET', '/v1/sessions', user), 404, /^Organization not found$/)
    expectError(await send('GET', `/v1/orgs/${DEFAULT}`, user), 404, /^Organization not found$/)
    expectError(await send('GET', `/v1/orgs/${DEFAULT}/members`, user), 404, /^Organization not found$/)
    expect((await send('GET', '/v1/auth/me', user)).body).toMatchObject({ id: user.id, roles: [], organizations: [] })
    expect((await send('GET', '/v1/orgs', user)).body).toEqual({ data: [] })
    expect((await send('POST', '/v1/orgs/join', user, { token: invitation.token })).body).toMatchObject({ id })
    const headers = { ...user.headers, 'Idempotency-Key': 'own' }
    expect((await call(service.url, 'POST', '/v1/orgs', { name: 'Own' }, headers)).status).toBe(201)
    expect((await send('GET', '/v1/auth/me', user)).body.roles).toEqual(['admin'])
    expect((await send('POST', '/v1/auth/logout', user)).status).toBe(204)
  })
})

describe('the last owner', () => {
  it('cannot leave or become anything else', async () => {
    const team = await newTeam()
    const { owner, second, admin } = team
    expect((await team.patch(owner, owner, 'admin')).status).toBe(200)
    for (const role of ['admin', 'member'] as const)
      expectError(await team.patch(second, second, role), 409, /^An organization needs an owner; make another/)
    expectError(await team.remove(second, second), 409, /^An organization needs an owner/)
    expect((await team.patch(second, second, 'owner')).status).toBe(200)
    expect((await team.patch(second, admin, 'owner')).status).toBe(200)
    expect((await team.remove(second, second)).status).toBe(204)
  })

  it('remains, however many leave at once', async () => {
    const teams = await Promise.all(Array.from({ length: 4 }, newTeam))
    for (const [index, team] of teams.entries()) {
      const { owner, second } = team
      const leave = (by: TestUser, other: TestUser) =>
        [() => team.remove(by, by), () => team.patch(by, by, 'member'), () => team.remove(by, other)][index % 3]?.()
      const answers = await Promise.all([leave(owner, second), leave(second, owner)])
      const statuses = answers.map((answer) => answer?.status ?? 0).sort()
      expect(statuses[0]).toBeLessThan(300)
      expect([404, 409]).toContain(statuses[1])
      const owners = await query(
        service.database,
        `SELECT 1 FROM members WHERE organization_id = $1 AND role = 'owner'`,
        [toUuid(team.id)],
      )
      expect(owners).toHaveLength(1)
    }
  })
})
