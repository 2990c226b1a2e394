import type { Deps } from '../../domain/deps.ts'
import { prepareAdministrator } from '../../domain/identity/auth/administrator.ts'
import { startLogin } from '../../domain/identity/auth/log-in.ts'
import { addOwnOrganization, createApiKey, FULL_MODE, logInUser, newPassword, registerUser } from '../support/auth.ts'
import { call } from '../support/http.ts'
import { startService, type TestService } from '../support/service.ts'

let service: TestService
let deps: Deps
beforeAll(async () => {
  service = await startService({ worker: false, environment: FULL_MODE })
  deps = service.platform.deps
})
afterAll(() => service.stop())

/** Prepares the administrator as three processes that start at the same time do. */
const startWith = async (administrator: { email: string; password: string }): Promise<void> => {
  const started = { ...deps, auth: { ...deps.auth, administrator } }
  await Promise.all([1, 2, 3].map(() => prepareAdministrator(started)))
}
const rolesOf = async (headers: Record<string, string>) =>
  (await call(service.url, 'GET', '/v1/auth/me', undefined, headers)).body.roles
const newAdministrator = () => ({ email: `admin-${crypto.randomUUID()}@example.com`, password: newPassword() })

describe('the administrator of the environment', () => {
  it('is created once at the start, and stays signed in over a restart', async () => {
    const administrator = newAdministrator()
    await startWith(administrator)
    const { id, headers } = await logInUser(service.url, administrator)
    const { key } = await createApiKey(service.url, headers)
    await startWith(administrator)
    for (const each of [headers, { Authorization: key }]) expect(await rolesOf(each)).toEqual(['owner'])
    expect(await deps.db.member.count({ where: { userId: id } })).toBe(1)
  })

  it('takes over an existing user with the e-mail address, with a new password', async () => {
    const squatter = await registerUser(service.url)
    const { key } = await createApiKey(service.url, squatter.headers)
    const own = await addOwnOrganization(service.url, squatter)
    await call(service.url, 'POST', `/v1/orgs/${own.id}/invitations`, { role: 'owner' }, squatter.headers)
    const password = newPassword()
    await startWith({ email: squatter.email, password })
    expect(await deps.db.invitation.count({ where: { createdBy: squatter.id } })).toBe(0)
    for (const each of [squatter.headers, { Authorization: key }]) expect(await rolesOf(each)).toBeUndefined()
    await expect(logInUser(service.url, squatter)).rejects.toThrow('401')
    const admin = await logInUser(service.url, { email: squatter.email, password })
    expect(admin.id).toBe(squatter.id)
    expect(await rolesOf(admin.headers)).toEqual(['owner'])
  })

  it('takes over from a login in progress', async () => {
    const squatter = await registerUser(service.url)
    const proven = await deps.db.user.findUniqueOrThrow({ where: { id: squatter.id } })
    await startWith({ email: squatter.email, password: newPassword() })
    await expect(
      startLogin(deps, proven, { origin: { address: '::1', requestId: 'a' }, method: 'password' }),
    ).rejects.toThrow(/login is no longer valid/)
    expect(await deps.db.refreshToken.count({ where: { userId: squatter.id } })).toBe(0)
  })

  it('takes over a user who signs in at a provider', async () => {
    const { id, email } = await deps.db.user.create({
      data: { id: crypto.randomUUID(), email: newAdministrator().email, name: 'X', provider: 'idpa', subject: 'x' },
    })
    const password = newPassword()
    await startWith({ email, password })
    expect((await logInUser(service.url, { email, password })).id).toBe(id)
    expect(
      await deps.db.user.findUnique({ where: { provider_subject: { provider: 'idpa', subject: 'x' } } }),
    ).toBeNull()
  })

  it('becomes an ordinary member once the environment names another', async () => {
    const [former, next] = [newAdministrator(), newAdministrator()]
    await startWith(former)
    const { headers } = await logInUser(service.url, former)
    await startWith(next)
    expect(await rolesOf(headers)).toBeUndefined()
    expect(await rolesOf((await logInUser(service.url, former)).headers)).toEqual(['member'])
    expect(await rolesOf((await logInUser(service.url, next)).headers)).toEqual(['owner'])
  })
})
