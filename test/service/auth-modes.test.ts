import { register } from '../../domain/identity/auth/log-in.ts'
import { ADMIN, ADMIN_MODE, bearer, FULL_MODE, fromSomewhere, logInUser, newPassword } from '../support/auth.ts'
import { call, expectError, type Json } from '../support/http.ts'
import { withService } from '../support/service.ts'

const post = (path: string, body: unknown, url: string) => call(url, 'POST', path, body, fromSomewhere())
const me = (token: string, url: string) => call(url, 'GET', '/v1/auth/me', undefined, bearer(token))
const newEmail = () => `somebody-${Math.random().toString(36).slice(2)}@example.com`

describe('mode admin', () => {
  it('lets in the administrator and nobody else', async () => {
    await withService({ worker: false, environment: ADMIN_MODE }, async ({ url, platform }) => {
      const { body: config } = await call(url, 'GET', '/v1/auth/config')
      expect(config).toEqual({ mode: 'admin', password_auth_enabled: true, oauth_providers: [], signup_enabled: false })
      const admin = await logInUser(url, ADMIN)
      expect((await me(admin.accessToken, url)).body.roles).toEqual(['owner'])
      const somebody = { email: newEmail(), password: newPassword(), name: 'X' }
      expectError(await post('/v1/auth/register', somebody, url), 403, /not enabled/)

      // A user who signed up in mode full.
      const deps = { ...platform.deps, auth: { ...platform.deps.auth, hasSignup: true } }
      const tokens = await register(deps, somebody, { address: '::1', requestId: 'a' })
      const { email, password } = somebody
      expectError(await post('/v1/auth/login', { email, password }, url), 401, /wrong/)
      expect((await me(tokens.access_token, url)).status).toBe(401)
      expect((await post('/v1/auth/refresh', { refresh_token: tokens.refresh_token }, url)).status).toBe(401)
      // The refresh token is refused in this mode but not deleted.
      expect(await platform.deps.db.refreshToken.count({ where: { user: { email } } })).toBe(1)
    })
  })
})

describe('what is turned off', () => {
  it('is refused, and shown in the configuration', async () => {
    const environment = { ...FULL_MODE, AUTH_DISABLE_PASSWORD: 'true', AUTH_DISABLE_SIGNUP: 'true' }
    await withService({ worker: false, environment }, async ({ url }) => {
      expect((await call(url, 'GET', '/v1/auth/config')).body).toEqual({
        mode: 'full',
        password_auth_enabled: false,
        oauth_providers: [],
        signup_enabled: false,
      })
      const body = { email: newEmail(), password: newPassword(), name: 'X' }
      expectError(await post('/v1/auth/login', body, url), 401, /not enabled/)
      expectError(await post('/v1/auth/register', body, url), 403, /not enabled/)
    })
  })

  it('is all sign-in, in mode none', async () => {
    await withService({ worker: false }, async ({ url }) => {
      const body = { email: newEmail(), password: newPassword(), name: 'X' }
      expectError(await post('/v1/auth/login', body, url), 401, /not enabled/)
      expectError(await post('/v1/auth/register', body, url), 403, /not enabled/)
      const { body: user } = await call(url, 'GET', '/v1/auth/me')
      expect(user).toMatchObject({ email: 'anonymous@local', name: 'Anonymous', roles: ['admin'] } satisfies Json)
    })
  })
})
