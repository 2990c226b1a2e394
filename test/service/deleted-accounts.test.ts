import { ADMIN, addOwnOrganization, createApiKey, logInUser, registerUser, type TestUser } from '../support/auth.ts'
import { type Answer, call, createScriptedSession, createSession, expectError, waitFor } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { type Addresses, query, sharedService } from '../support/shared/service.ts'
import { openStream } from '../support/stream.ts'
import { MUTE } from '../support/turns.ts'

const DEFAULT = 'org_00000000000000000000000000000001'
const YEARLY = { cron_expression: '0 0 1 1 *', target: { type: 'activity', name: 'noop' } }

let service: Addresses
beforeAll(async () => {
  service = await sharedService('full')
})

type As = Pick<TestUser, 'headers'>
const send = (method: string, path: string, { headers }: As, body?: unknown): Promise<Answer> =>
  call(service.url, method, path, body, headers)
const count = async (sql: string, id: string): Promise<number> =>
  (await query(service.database, `SELECT count(*)::int AS rows FROM ${sql} = $1`, [id]))[0].rows

async function join(organization: string, owner: As, role: string): Promise<TestUser> {
  const user = await registerUser(service.url)
  const { body } = await send('POST', `/v1/orgs/${organization}/invitations`, owner, { role })
  expect((await send('POST', '/v1/orgs/join', user, { token: body.token })).status).toBe(200)
  return user
}

describe('an organization', () => {
  it('is deleted by an owner with all that it has, and nobody has access from then on', async () => {
    const owner = await registerUser(service.url)
    const { id, headers } = await addOwnOrganization(service.url, owner)
    const inside = { headers }
    const admin = await join(id, owner, 'admin')
    const { key } = await createApiKey(service.url, headers)
    const session = await createScriptedSession(service.url, [MUTE], {}, {}, headers)
    const message = { message: { content: [{ type: 'text', text: 'Go' }] } }
    expect((await send('POST', `/v1/sessions/${session}/messages`, inside, message)).status).toBe(201)
    const file = { path: '/a.txt', content: 'text' }
    await send('PUT', `/v1/sessions/${session}/fs/a.txt`, inside, file)
    const schedule = await send('POST', '/v1/durable/schedules', inside, { name: 'yearly', ...YEARLY })
    expect(schedule.status).toBe(201)
    const stream = await openStream({ url: service.url, headers }, `/v1/sessions/${session}/sse`)
    await stream.until((frame) => frame.event === 'turn.started')

    expectError(await send('DELETE', `/v1/orgs/${id}`, admin), 403, 'Only owners of the organization may delete it')
    const stranger = await registerUser(service.url)
    expectError(await send('DELETE', `/v1/orgs/${id}`, stranger), 404, /^Organization not found$/)
    expect((await send('DELETE', `/v1/orgs/${id}`, owner)).status).toBe(204)

    expectError(await send('DELETE', `/v1/orgs/${id}`, owner), 404)
    expectError(await send('GET', `/v1/orgs/${id}`, admin), 404)
    expect((await send('GET', `/v1/sessions/${session}`, inside)).status).toBeGreaterThanOrEqual(400)
    expect((await call(service.url, 'GET', '/v1/sessions', undefined, { Authorization: key })).status).toBe(401)
    await stream.until((frame) => frame.event === 'disconnecting')
    stream.close()
    const uuid = toUuid(id)
    await waitFor(async () => (await count('organizations WHERE id', uuid)) === 0, 'the organization to be removed')
    const session_id = toUuid(session)
    await waitFor(async () => (await count('events WHERE session_id', session_id)) === 0, 'its events to go')
    for (const table of ['sessions', 'turns', 'agents', 'schedules', 'images', 'skills']) {
      expect([table, await count(`${table} WHERE organization_id`, uuid)]).toEqual([table, 0])
    }
  })

  it('stays if it is the default one', async () => {
    const admin = await logInUser(service.url, ADMIN)
    expectError(await send('DELETE', `/v1/orgs/${DEFAULT}`, admin), 409, 'The default organization cannot be deleted')
  })
})

describe('a user', () => {
  it('is deleted with the organizations that nobody else belongs to, and leaves the others', async () => {
    const owner = await registerUser(service.url)
    const { id } = await addOwnOrganization(service.url, owner, 'Shared')
    const user = await join(id, owner, 'member')
    const alone = await addOwnOrganization(service.url, user)
    const { key } = await createApiKey(service.url, alone.headers)
    const session = await createSession(service.url, undefined, {}, { ...user.headers, 'X-Org-Id': id })

    expect((await send('DELETE', '/v1/users/me', user)).status).toBe(204)
    expect((await send('GET', '/v1/auth/me', user)).status).toBe(401)
    expect((await call(service.url, 'GET', '/v1/sessions', undefined, { Authorization: key })).status).toBe(401)
    expectError(await call(service.url, 'POST', '/v1/auth/login', user, { 'X-Forwarded-For': '192.0.2.77' }), 401)
    await waitFor(async () => (await count('organizations WHERE id', toUuid(alone.id))) === 0, 'the organization to go')
    const inShared = { headers: { ...owner.headers, 'X-Org-Id': id } }
    expect((await send('GET', `/v1/sessions/${session}`, inShared)).status).toBe(200)
    const { body } = await send('GET', `/v1/orgs/${id}/members`, owner)
    expect(body.data.map((member: { user_id: string }) => member.user_id)).toEqual([owner.id])
    const again = { email: user.email, password: user.password, name: 'Again' }
    expect((await call(service.url, 'POST', '/v1/auth/register', again)).status).toBe(201)
  })

  it('stays as the only owner among others, until another one is an owner or the organization is gone', async () => {
    const owner = await registerUser(service.url)
    const [first, second] = [
      await addOwnOrganization(service.url, owner, 'First'),
      await addOwnOrganization(service.url, owner, 'Second'),
    ]
    const heir = await join(first.id, owner, 'member')
    await join(second.id, owner, 'admin')
    const refused = () => send('DELETE', '/v1/users/me', owner)
    expectError(await refused(), 409, /^(First|Second) has other members and no other owner/)
    expect((await send('PATCH', `/v1/orgs/${first.id}/members/${heir.id}`, owner, { role: 'owner' })).status).toBe(200)
    expectError(await refused(), 409, 'Second has other members and no other owner')
    expect((await send('DELETE', `/v1/orgs/${second.id}`, owner)).status).toBe(204)
    expect((await refused()).status).toBe(204)
    expect((await send('GET', `/v1/orgs/${first.id}`, heir)).status).toBe(200)
  })

  it('may be writing meanwhile, which is answered with a sentence', async () => {
    const users = await Promise.all(Array.from({ length: 4 }, () => registerUser(service.url)))
    const answers = await Promise.all(
      users.flatMap((user) => [
        ...[1, 2, 3].map(() => send('POST', '/v1/orgs', user, { name: 'Last' })),
        send('DELETE', '/v1/users/me', user),
        ...[1, 2, 3].map(() => send('POST', '/v1/orgs', user, { name: 'Last' })),
      ]),
    )
    // A slow machine may be too busy for all of them.
    const refused = answers.filter(({ status }) => status === 503)
    expect(refused.length).toBeLessThan(answers.length / 2)
    expect(answers.map(({ status }) => status).filter((status) => status >= 500 && status !== 503)).toEqual([])
  })

  it('stays if the configuration names it, or if it is an API key that asks', async () => {
    const admin = await logInUser(service.url, ADMIN)
    expectError(await send('DELETE', '/v1/users/me', admin), 409, 'The configuration names this user')
    const user = await registerUser(service.url)
    const { headers } = await addOwnOrganization(service.url, user)
    const { key } = await createApiKey(service.url, headers)
    expectError(await call(service.url, 'DELETE', '/v1/users/me', undefined, { Authorization: key }), 403)
  })
})
