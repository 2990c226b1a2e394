import { randomInt } from 'node:crypto'
import { createOauthProvider } from '../../domain/identity/auth/oauth-provider.ts'
import { bearer, FULL_MODE, registerUser } from '../support/auth.ts'
import { type Browser, beginSignIn, createBrowser, errorOf, type Page } from '../support/browser.ts'
import { call, type Json } from '../support/http.ts'
import { type OauthServer, startOauthServer } from '../support/oauth-server.ts'
import { type TestService, withService } from '../support/service.ts'

let server: OauthServer
beforeAll(async () => {
  server = await startOauthServer()
})
afterAll(() => server.close())

type Somebody = { id: number; email: string }
const newSomebody = (email?: string): Somebody => {
  const id = randomInt(2 ** 40)
  return { id, email: email ?? `somebody-${id}@example.com` }
}

async function signIn(service: TestService, { id, email }: Somebody): Promise<{ page: Page; browser: Browser }> {
  const browser = createBrowser(service)
  const begun = await beginSignIn(browser, 'idpb')
  const emails = [{ email, primary: true, verified: true }]
  const page = await browser.open(server.grant(begun.location ?? '', { user: { id, login: 'somebody' }, emails }))
  return { page, browser }
}

async function whoIs(service: TestService, somebody: Somebody): Promise<Json> {
  const { browser } = await signIn(service, somebody)
  const headers = bearer(browser.cookies.get('access_token') ?? '')
  return (await call(service.url, 'GET', '/v1/auth/me', undefined, headers)).body
}

const withProvider = (more: Record<string, string>, check: (service: TestService) => Promise<void>) =>
  withService({ worker: false, environment: { ...FULL_MODE, ...server.environment, ...more } }, check)

describe('the administrator where nobody has a password', () => {
  it('is the user who signs in with the e-mail of the environment, and nobody else', async () => {
    const [admin, other] = [newSomebody(), newSomebody()]
    const environment = { AUTH_DISABLE_PASSWORD: 'true', AUTH_ADMIN_EMAIL: admin.email }
    await withProvider(environment, async (service) => {
      expect((await whoIs(service, other)).roles).toEqual(['member'])
      const { id, roles } = await whoIs(service, admin)
      expect(roles).toEqual(['owner'])
      expect(await whoIs(service, admin)).toMatchObject({ id, roles: ['owner'] })

      const { auth } = service.platform.deps
      auth.administrator = { email: other.email, password: undefined }
      expect((await whoIs(service, other)).roles).toEqual(['owner'])
      expect((await whoIs(service, admin)).roles).toEqual(['member'])
    })
  })

  it('is not an existing user with the e-mail address, nor chosen by e-mail while there are passwords', async () => {
    await withProvider({}, async (service) => {
      const { deps } = service.platform
      const [known, squatter] = [newSomebody(), await registerUser(service.url)]
      deps.auth.administrator = { email: known.email, password: undefined }
      expect((await whoIs(service, known)).roles).toEqual(['member'])
      deps.auth.hasPasswords = false
      deps.auth.administrator = { email: squatter.email, password: undefined }
      const { page } = await signIn(service, newSomebody(squatter.email))
      expect(errorOf(page)).toMatchObject({ status: 409 })
      const { body } = await call(service.url, 'GET', '/v1/auth/me', undefined, squatter.headers)
      expect(body.roles).toEqual(['member'])
    })
  })
})

describe('an account', () => {
  it('differs from an account with the same id at another provider', async () => {
    await withProvider({}, async (service) => {
      const { deps } = service.platform
      const [here, there] = [newSomebody(), newSomebody()]
      const { id } = await whoIs(service, here)
      const { AUTH_IDPB_TOKEN_URL: tokenUrl = '', AUTH_IDPB_AUTHORIZE_URL: authorizeUrl = '' } = server.environment
      const { AUTH_IDPB_CLIENT_ID: clientId = '', AUTH_IDPB_CLIENT_SECRET: clientSecret = '' } = server.environment
      const userUrl = new URL(server.environment.AUTH_IDPB_USER_URL ?? '')
      userUrl.hostname = userUrl.hostname === 'localhost' ? '127.0.0.1' : 'localhost'
      const redirectUri = `${deps.auth.baseUrl}/v1/auth/callback/idpb`
      deps.auth.identityProviders.idpb = createOauthProvider({
        ...{ authorizeUrl, tokenUrl, userUrl: userUrl.href, scope: 'user', clientId, clientSecret, redirectUri },
      })
      const other = await whoIs(service, { id: here.id, email: there.email })
      expect(other.email).toBe(there.email)
      expect(other.id).not.toBe(id)
    })
  })

  it('gets a specific error if registration is not enabled', async () => {
    await withProvider({}, async (service) => {
      const [known, password] = [newSomebody(), await registerUser(service.url)]
      await whoIs(service, known)
      service.platform.deps.auth.hasSignup = false
      expect((await whoIs(service, known)).email).toBe(known.email)
      const taken = await signIn(service, newSomebody(password.email))
      expect(errorOf(taken.page)).toMatchObject({
        status: 409,
        error: expect.stringMatching(/is already registered/),
      })
      const unknown = await signIn(service, newSomebody())
      expect(errorOf(unknown.page)).toMatchObject({
        status: 403,
        error: expect.stringMatching(/registration is not enabled/),
      })
    })
  })
})
