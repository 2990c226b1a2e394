import { randomInt } from 'node:crypto'
import { bearer, FULL_MODE, registerUser } from '../support/auth.ts'
import {
  BASE_URL,
  type Browser,
  beginSignIn,
  callbackFor,
  callbackOf,
  createBrowser,
  errorOf,
  type Page,
  parametersOf,
} from '../support/browser.ts'
import { call, type Json, PATIENCE_MS, waitFor } from '../support/http.ts'
import { CLIENT } from '../support/identity-provider.ts'
import { type Account, type OauthServer, startOauthServer } from '../support/oauth-server.ts'
import { startService, type TestService, withService } from '../support/service.ts'

let server: OauthServer
let service: TestService
beforeAll(async () => {
  server = await startOauthServer()
  service = await startService({ worker: false, environment: { ...FULL_MODE, ...server.environment } })
})
afterAll(async () => {
  await service.stop()
  await server.close()
})
afterEach(() => {
  server.failWith = undefined
})

const newId = () => randomInt(2 ** 40)

/** Returns an account as GitHub describes a user with a private e-mail address. */
function newAccount(user: Record<string, unknown> = {}, more: Partial<Account> = {}): Account & { email: string } {
  const id = newId()
  const email = `octocat-${id}@example.com`
  const emails = [
    { email: `old-${id}@example.com`, primary: false, verified: true },
    { email, primary: true, verified: true },
  ]
  const all = { id, login: `octocat-${id}`, name: 'Octo Cat', email: null, avatar_url: 'https://a.example/1', ...user }
  return { email, user: all, emails, ...more }
}

async function signIn(account: Account, browser: Browser = createBrowser(service)): Promise<Page> {
  const begun = await beginSignIn(browser, 'idpb')
  return browser.open(server.grant(begun.location ?? '', account))
}

async function whoIs(browser: Browser): Promise<Json> {
  const headers = bearer(browser.cookies.get('access_token') ?? '')
  return (await call(service.url, 'GET', '/v1/auth/me', undefined, headers)).body
}

const UNVERIFIED = { status: 401, error: "The identity provider's answer could not be verified; begin again" }
const SILENT = { status: 502, error: 'The identity provider does not answer' }

describe('signing in with OAuth 2', () => {
  it('creates a user, sets the cookies and redirects', async () => {
    const browser = createBrowser(service)
    const account = newAccount()
    const page = await signIn(account, browser)
    expect(page).toMatchObject({ status: 302, location: `${BASE_URL}/` })
    expect([...browser.cookies.keys()].sort()).toEqual(['access_token', 'refresh_token'])
    const me = await whoIs(browser)
    expect(me).toMatchObject({ email: account.email, name: 'Octo Cat', avatar_url: 'https://a.example/1' })
    const headers = bearer(browser.cookies.get('access_token') ?? '')
    const { body } = await call(service.url, 'GET', `/v1/users?search=${account.email}`, undefined, headers)
    expect(body.data).toEqual([expect.objectContaining({ id: me.id, auth_provider: 'idpb' })])
  })

  it('recognises a returning user by id, even if the e-mail address has changed', async () => {
    const [first, second] = [createBrowser(service), createBrowser(service)]
    const account = newAccount()
    await signIn(account, first)
    const emails = [{ email: `new-${account.email}`, primary: true, verified: true }]
    expect(await signIn({ ...account, emails }, second)).toMatchObject({ status: 302 })
    expect((await whoIs(second)).id).toBe((await whoIs(first)).id)
  })

  it('creates one user for concurrent first sign-ins of the same account', async () => {
    const account = newAccount()
    const browsers = Array.from({ length: 5 }, () => createBrowser(service))
    const { db } = service.platform.deps
    const signingIn = await db.$transaction(
      async (tx) => {
        // The lock lets all of them look for the user before any of them can create it.
        await tx.$executeRaw`LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE`
        const begun = browsers.map((browser) => signIn(account, browser))
        const waiting = () => tx.$queryRaw<unknown[]>`
          SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = database
          WHERE datname = current_database() AND relation = 'users'::regclass AND NOT granted`
        await waitFor(async () => (await waiting()).length === browsers.length, 'all to make a user')
        return begun
      },
      { timeout: PATIENCE_MS },
    )
    const pages = await Promise.all(signingIn)
    expect(pages.map(({ status }) => status)).toEqual(Array(5).fill(302))
    const ids = await Promise.all(browsers.map(async (browser) => (await whoIs(browser)).id))
    expect(new Set(ids).size).toBe(1)
  })

  it('sends a challenge and the configured scope, keeping the query of the configured URL', async () => {
    const page = await beginSignIn(createBrowser(service), 'idpb')
    expect(page.location).toMatch(new RegExp(`^${server.url}/login/oauth/authorize\\?`))
    expect(parametersOf(page)).toEqual({
      allow_signup: 'false',
      client_id: CLIENT.clientId,
      response_type: 'code',
      redirect_uri: callbackOf('idpb'),
      scope: 'read:user user:email',
      state: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
    })
  })

  it('sends the headers that the API requires', async () => {
    await signIn(newAccount())
    for (const headers of server.apiHeaders.slice(-2)) {
      expect(headers).toMatchObject({ accept: 'application/json', 'user-agent': 'agent-session-service' })
    }
  })

  it('is shown in the configuration', async () => {
    const { body } = await call(service.url, 'GET', '/v1/auth/config')
    expect(body).toMatchObject({ mode: 'full', oauth_providers: ['idpb'] })
  })

  it.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ['the login for a name', { name: null, login: 'octo' }, { name: 'octo' }],
    ['the e-mail for both', { name: ' ', login: 7 }, { name: expect.stringMatching(/^octocat-\d+$/) }],
    ['no picture from a data URL', { avatar_url: 'data:image/png;base64,AA' }, { avatar_url: null }],
    ['no picture with a long address', { avatar_url: `https://a.example/${'x'.repeat(2048)}` }, { avatar_url: null }],
  ])('takes %s', async (_, user, expected) => {
    const browser = createBrowser(service)
    expect(await signIn(newAccount(user), browser)).toMatchObject({ status: 302 })
    expect(await whoIs(browser)).toMatchObject(expected)
  })

  it('understands an API with the field names of OpenID Connect', async () => {
    const browser = createBrowser(service)
    const email = `sub-${newId()}@example.com`
    const user = { sub: `user|${newId()}`, email, email_verified: true, picture: 'https://a.example/2' }
    const token = { id_token: 'of somebody whom nobody knows', token_type: 'Bearer' }
    expect(await signIn({ user, token }, browser)).toMatchObject({ status: 302 })
    expect(await whoIs(browser)).toMatchObject({ email, avatar_url: 'https://a.example/2' })
  })
})

describe('who may sign in', () => {
  const unverified = [{ email: 'a@example.com', primary: true, verified: false }]
  it.each<[string, Account]>([
    ['no primary e-mail that is verified', newAccount({}, { emails: unverified })],
    ['an e-mail that only the user says is theirs', newAccount({ email: 'a@example.com' }, { emails: [] })],
    ['verified in words', newAccount({ email: 'a@example.com', email_verified: 'true' }, { emails: unverified })],
    ['another kind of verified', newAccount({ email: 'a@example.com', verified: true }, { emails: undefined })],
    ['no e-mails that the token may see', newAccount({}, { emails: undefined })],
    ['malformed e-mails', newAccount({}, { emails: { email: 'a@example.com', primary: true, verified: true } })],
    [
      'an e-mail without an end',
      newAccount({}, { emails: [{ email: 'octocat@localhost', primary: true, verified: true }] }),
    ],
  ])('is nobody with %s', async (_, account) => {
    expect(errorOf(await signIn(account))).toEqual({ status: 403, error: expect.stringMatching(/verified e-mail/) })
  })

  it.each<[string, Record<string, unknown>]>([
    ['no id', { id: undefined }],
    ['an empty one', { id: '' }],
    ['an object for one', { id: {} }],
    ['a fraction for one', { id: 1.5 }],
    ['a number that has been rounded', { id: 2 ** 53 }],
  ])('is nobody with %s', async (_, user) => {
    expect(errorOf(await signIn(newAccount(user)))).toEqual(UNVERIFIED)
  })

  it('is nobody whose e-mail has a password here', async () => {
    const { email } = await registerUser(service.url)
    const account = newAccount({}, { emails: [{ email: email.toUpperCase(), primary: true, verified: true }] })
    expect(errorOf(await signIn(account))).toEqual({ status: 409, error: expect.stringMatching(/^email: /) })
  })

  it('is only a known user if registration is off', async () => {
    const peer = await service.startPeer()
    peer.platform.deps.auth.hasSignup = false
    const known = newAccount()
    await signIn(known)
    expect(await signIn(known, createBrowser(peer))).toMatchObject({ status: 302 })
    expect(errorOf(await signIn(newAccount(), createBrowser(peer)))).toMatchObject({ status: 403 })
  })
})

describe('the callback', () => {
  it('works once', async () => {
    const browser = createBrowser(service)
    const callback = server.grant((await beginSignIn(browser, 'idpb')).location ?? '', newAccount())
    const copy = createBrowser(service)
    for (const [name, value] of browser.cookies) copy.cookies.set(name, value)
    expect(await browser.open(callback)).toMatchObject({ status: 302 })
    expect(errorOf(await browser.open(callback))).toMatchObject({ status: 401 })
    expect(errorOf(await copy.open(callback))).toEqual(UNVERIFIED)
  })

  it('is valid only for the browser that began', async () => {
    const [browser, other] = [createBrowser(service), createBrowser(service)]
    const callback = server.grant((await beginSignIn(browser, 'idpb')).location ?? '', newAccount())
    expect(errorOf(await createBrowser(service).open(callback))).toMatchObject({ status: 401 })
    await beginSignIn(other, 'idpb')
    expect(errorOf(await other.open(callback))).toMatchObject({ status: 401 })
    expect(await browser.open(callback)).toMatchObject({ status: 302 })
  })

  it('may have a query of its own', async () => {
    const AUTH_IDPB_REDIRECT_URI = `${callbackOf('idpb')}?tenant=a%20b`
    const environment = { ...FULL_MODE, ...server.environment, AUTH_IDPB_REDIRECT_URI }
    await withService({ worker: false, environment }, async (its) => {
      expect(await signIn(newAccount(), createBrowser(its))).toMatchObject({ status: 302 })
    })
  })

  it('accepts no code of another browser’s sign-in', async () => {
    const [browser, other] = [createBrowser(service), createBrowser(service)]
    const stolen = new URL(server.grant((await beginSignIn(other, 'idpb')).location ?? '', newAccount()))
    const begun = await beginSignIn(browser, 'idpb')
    const page = await browser.open(callbackFor('idpb', begun, stolen.searchParams.get('code') ?? ''))
    expect(errorOf(page)).toEqual(UNVERIFIED)
  })

  it('is not valid for another provider', async () => {
    const peer = await service.startPeer()
    const { identityProviders } = peer.platform.deps.auth
    identityProviders.idpa = identityProviders.idpb
    const browser = createBrowser(peer)
    // Both names are the same provider here, so only the provider's name in the callback can be wrong.
    const callback = server.grant((await beginSignIn(browser, 'idpb')).location ?? '', newAccount())
    expect(errorOf(await browser.open(callback.replace('/idpb?', '/idpa?')))).toMatchObject({ status: 401 })
  })
})

describe('a provider that fails', () => {
  it.each([500, 503, 429, 302])('with %s is a bad gateway', async (status) => {
    const browser = createBrowser(service)
    const begun = await beginSignIn(browser, 'idpb')
    server.failWith = status
    expect(errorOf(await browser.open(callbackFor('idpb', begun)))).toEqual(SILENT)
  })

  it('does not prevent the redirect to it', async () => {
    server.failWith = 500
    expect(await beginSignIn(createBrowser(service), 'idpb')).toMatchObject({ status: 302 })
  })

  it('is reported as a configuration error if it does not know the service', async () => {
    const environment = { ...FULL_MODE, ...server.environment, AUTH_IDPB_CLIENT_SECRET: 'another-secret-of-a-test' }
    await withService({ worker: false, environment }, async (its) => {
      const browser = createBrowser(its)
      const page = await browser.open(callbackFor('idpb', await beginSignIn(browser, 'idpb')))
      expect(errorOf(page)).toEqual({ status: 502, error: expect.stringMatching(/client id, secret or redirect URI/) })
    })
  })
})
