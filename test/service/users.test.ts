import {
  ADMIN,
  ADMIN_VARIABLES,
  addOwnOrganization,
  FULL_MODE,
  logInUser,
  registerUser,
  type TestUser,
} from '../support/auth.ts'
import { call, expectError, type Json } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { startService, type TestService } from '../support/service.ts'

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
const idsOf = (answer: { body: Json }): string[] => answer.body.data.map(({ id }: Json) => id)

describe('the users', () => {
  it("are the organization's, the newest member first", async () => {
    const own = await addOwnOrganization(service.url, user)
    expect((await get('/v1/users', own.headers)).body.data).toEqual([
      {
        id: user.id,
        email: user.email,
        name: 'A user',
        roles: ['owner'],
        auth_provider: 'password',
        avatar_url: null,
        created_at: expect.any(String),
      },
    ])
    const latest = await registerUser(service.url)
    const ids = idsOf(await get('/v1/users', user.headers))
    expect(ids[0]).toBe(latest.id)
    expect(ids).toEqual(expect.arrayContaining([user.id, admin.id]))
    expect(ids).not.toContain('00000000-0000-0000-0000-000000000001')
  })

  it('are found by a literal part of name or e-mail, ignoring case', async () => {
    const { db } = service.platform.deps
    const percent = await registerUser(service.url)
    await db.user.update({ where: { id: percent.id }, data: { name: '100%_sure\\' } })
    const search = async (text: string) =>
      idsOf(await get(`/v1/users?search=${encodeURIComponent(text)}`, user.headers))
    expect(await search(percent.email.toUpperCase().slice(0, 12))).toEqual([percent.id])
    for (const text of ['100%', '0%_S', '_SURE\\', '\\']) expect(await search(text)).toEqual([percent.id])
    expect(await search("' OR true --")).toEqual([])
    expectError(await get(`/v1/users?search=${'x'.repeat(201)}`, user.headers), 400, /^search: /)
  })

  it('are all listed, however many', async () => {
    const own = await addOwnOrganization(service.url, user)
    const organizationId = toUuid(own.id)
    await service.platform.deps.db.$executeRaw`
      WITH made AS (
        INSERT INTO users (id, email, name, updated_at)
        SELECT gen_random_uuid(), n || '@many.example', 'One of many', now() FROM generate_series(1, 250) AS n
        RETURNING id
      )
      INSERT INTO members (user_id, organization_id, role) SELECT id, ${organizationId}::uuid, 'member' FROM made`
    expect(new Set(idsOf(await get('/v1/users', own.headers))).size).toBe(251)
    expect(new Set(idsOf(await get('/v1/users?search=many', own.headers))).size).toBe(250)
  })
})
