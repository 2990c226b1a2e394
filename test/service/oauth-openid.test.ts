import { randomBytes } from 'node:crypto'
import { createOpenIdProvider } from '../../domain/identity/auth/open-id-provider.ts'
import { ADMIN_MODE, bearer, FULL_MODE, fromSomewhere, registerUser } from '../support/auth.ts'
import {
  BASE_URL,
  type Browser,
  beginSignIn,
  callbackOf,
  createBrowser,
  errorOf,
  type Page,
  parametersOf,
} from '../support/browser.ts'
import { call, type Json } from '../support/http.ts'
import {
  CLIENT,
  openForm,
  REDIRECT_URI,
  signInAtProvider,
  startIdentityProvider,
  type TestIdentityProvider,
} from '../support/identity-provider.ts'
import { startService, type TestService, withService } from '../support/service.ts'

let provider: TestIdentityProvider
let service: TestService
beforeAll(async () => {
  provider = await startIdentityProvider()
  service = await startService({
    worker: false,
    environment: {
      ...FULL_MODE,
      AUTH_IDPA_ISSUER: provider.issuer,
      AUTH_IDPA_CLIENT_ID: CLIENT.clientId,
      AUTH_IDPA_CLIENT_SECRET: CLIENT.clientSecret,
    },
  })
})
afterAll(async () => {
  await service.stop()
  await provider.stop()
})

const newName = () => `user-${randomBytes(6).toString('hex')}`

async function signIn(login: string, browser: Browser = createBrowser(service), returnTo?: string): Promise<Page> {
  return browser.open(await signInAtProvider(browser, login, returnTo))
}

/** Returns the user as whom the browser is signed in. */
async function whoIs(browser: Browser, url = service.url): Promise<Json> {
  const token = browser.cookies.get('access_token') ?? ''
  return (await call(url, 'GET', '/v1/auth/me', undefined, bearer(token))).body
}

describe('signing in with OpenID Connect', () => {
  it('creates a user, sets the cookies and redirects', async () => {
    const name = newName()
    const browser = createBrowser(service)
    const page = await signIn(name, browser)
    expect(page).toMatchObject({ status: 302, location: `${BASE_URL}/` })
    const cookies = page.setCookies.filter((cookie) => /^(access|refresh)_token=eyJ/.test(cookie))
    expect(cookies).toHaveLength(2)
    for (const cookie of cookies) expect(cookie).toMatch(/; path=\/; expires=.*; samesite=lax; httponly/i)
    expect(browser.cookies.has('oauth_sign_in')).toBe(false)
    expect(await whoIs(browser)).toMatchObject({ email: `${name}@example.com`, name, roles: ['member'] })
  })

  it('shows the provider in the list of users', async () => {
    const name = newName()
    const browser = createBrowser(service)
    await signIn(name, browser)
    const headers = bearer(browser.cookies.get('access_token') ?? '')
    const { body } = await call(service.url, 'GET', `/v1/users?search=${name}`, undefined, headers)
    expect(body.data).toEqual([expect.objectContaining({ email: `${name}@example.com`, auth_provider: 'idpa' })])
  })

  it('recognises a returning user', async () => {
    const [first, second] = [createBrowser(service), createBrowser(service)]
    const name = newName()
    await signIn(name, first)
    await signIn(name, second)
    expect((await whoIs(second)).id).toBe((await whoIs(first)).id)
    expect(second.cookies.get('refresh_token')).not.toBe(first.cookies.get('refresh_token'))
  })

  it('takes the e-mail from the userinfo endpoint where the ID token has none', async () => {
    const other = await startIdentityProvider('userinfo')
    const environment = { ...service.environment, AUTH_IDPA_ISSUER: other.issuer }
    await withService({ worker: false, environment: withoutPlace(environment) }, async (its) => {
      const browser = createBrowser(its)
      const name = newName()
      expect(await signIn(name, browser)).toMatchObject({ status: 302 })
      expect(await whoIs(browser, its.url)).toMatchObject({ email: `${name}@example.com` })
    })
    await other.stop()
  })

  it('is shown in the configuration', async () => {
    const { body } = await call(service.url, 'GET', '/v1/auth/config')
    expect(body).toMatchObject({ mode: 'full', oauth_providers: ['idpa'] })
  })

  it('redirects with a challenge whose verifier the browser cannot read', async () => {
    const browser = createBrowser(service)
    const page = await beginSignIn(browser, 'idpa')
    expect(page.location).toMatch(new RegExp(`^${provider.issuer}/auth\\?`))
    expect(parametersOf(page)).toEqual({
      client_id: CLIENT.clientId,
      response_type: 'code',
      redirect_uri: REDIRECT_URI,
      scope: 'openid email profile',
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
    })
    expect(page.setCookies).toEqual([
      expect.stringMatching(/^oauth_sign_in=.*; path=\/; expires=.*; samesite=lax; httponly/i),
    ])
  })
})

describe('who may sign in', () => {
  it('is nobody whose e-mail the provider has not verified', async () => {
    const page = await signIn(`unverified-${newName()}`)
    expect(errorOf(page)).toEqual({ status: 403, error: expect.stringMatching(/verified e-mail/) })
  })

  it('is nobody whose e-mail has a password here', async () => {
    const user = await registerUser(service.url)
    const page = await signIn(user.email)
    expect(errorOf(page)).toEqual({ status: 409, error: expect.stringMatching(/^email: /) })
    expect(page.setCookies.filter((cookie) => /^(access|refresh)_token=/.test(cookie))).toEqual([])
  })

  it('is only a known user if registration is off', async () => {
    const peer = await service.startPeer()
    peer.platform.deps.auth.hasSignup = false
    const known = newName()
    await signIn(known)
    expect(await signIn(known, createBrowser(peer))).toMatchObject({ status: 302 })
    expect(errorOf(await signIn(newName(), createBrowser(peer)))).toMatchObject({ status: 403 })
  })

  it('is decided by the e-mail domain if domains are listed', async () => {
    const peer = await service.startPeer()
    peer.platform.deps.auth.identityProviders.idpa = createOpenIdProvider({
      ...CLIENT,
      issuer: provider.issuer,
      redirectUri: REDIRECT_URI,
      allowedDomains: ['other.example', 'Example.COM'],
    })
    expect(await signIn(newName(), createBrowser(peer))).toMatchObject({ status: 302 })
    for (const domain of ['sub.example.com', 'example.com.evil.org', 'evilexample.com', 'example.co']) {
      const page = await signIn(`${newName()}@${domain}`, createBrowser(peer))
      expect(errorOf(page)).toEqual({ status: 403, error: expect.stringMatching(/domain/) })
    }
  })

  it('is nobody who cancels at the provider', async () => {
    const browser = createBrowser(service)
    const form = await openForm(browser, await beginSignIn(browser, 'idpa'))
    const abort = /href="([^"]+\/abort)"/.exec(form.text)?.[1] ?? ''
    const { reached } = await browser.followTo(await browser.open(new URL(abort, form.url).href), REDIRECT_URI)
    const page = await browser.open(reached ?? '')
    expect(errorOf(page)).toEqual({ status: 401, error: 'The identity provider has not signed you in (access_denied)' })
  })
})

describe('the callback', () => {
  it('works once', async () => {
    const browser = createBrowser(service)
    const callback = await signInAtProvider(browser, newName())
    const kept = new Map(browser.cookies)
    expect(await browser.open(callback)).toMatchObject({ status: 302 })
    expect(errorOf(await browser.open(callback))).toMatchObject({ status: 401 })
    const copy = createBrowser(service)
    for (const [name, value] of kept) copy.cookies.set(name, value)
    expect(errorOf(await copy.open(callback))).toEqual({ status: 401, error: expect.stringMatching(/not be verified/) })
  })

  it('is valid only for the browser that began, and for its last sign-in', async () => {
    const victim = createBrowser(service)
    const callback = await signInAtProvider(victim, newName())
    expect(errorOf(await createBrowser(service).open(callback))).toMatchObject({ status: 401 })
    const other = createBrowser(service)
    await beginSignIn(other, 'idpa')
    expect(errorOf(await other.open(callback))).toMatchObject({ status: 401 })
    const forger = createBrowser(service)
    const kept = victim.cookies.get('oauth_sign_in') ?? ''
    forger.cookies.set('oauth_sign_in', kept.slice(0, 99) + (kept[99] === 'A' ? 'B' : 'A') + kept.slice(100))
    expect(errorOf(await forger.open(callback))).toMatchObject({ status: 401 })
    // The failed attempts have not used up the callback.
    expect(await victim.open(callback)).toMatchObject({ status: 302 })
  })

  it('accepts no other kind of token as the stored state', async () => {
    const user = await registerUser(service.url)
    const browser = createBrowser(service)
    for (const token of [user.accessToken, user.refreshToken, 'eyJhbGciOiJub25lIn0.e30.', 'x'.repeat(5000)]) {
      browser.cookies.set('oauth_sign_in', token)
      expect(errorOf(await browser.open(`${REDIRECT_URI}?code=a&state=b`))).toMatchObject({ status: 401 })
    }
  })

  it.each<[string, (state: string) => string, number]>([
    ['no code', (state) => `state=${state}`, 400],
    ['an empty code', (state) => `code=&state=${state}`, 400],
    ['no state', () => 'code=a', 400],
    ['nothing', () => '', 400],
    ['two codes', (state) => `code=a&code=b&state=${state}`, 400],
    ['two states', (state) => `code=a&state=${state}&state=b`, 400],
    ['two issuers', (state) => `code=a&state=${state}&iss=a&iss=b`, 400],
    ['another state', () => 'code=a&state=b', 401],
    ['another issuer', (state) => `code=a&state=${state}&iss=https%3A%2F%2Fevil.example`, 401],
    ['an invalid code', (state) => `code=a&state=${state}`, 401],
    ['an error in words', (state) => `error=Call%20us%20at%20555&error_description=555&state=${state}`, 401],
    ['a long error', () => `error=${'a'.repeat(51)}`, 401],
  ])('is refused with %s', async (_, query, status) => {
    const browser = createBrowser(service)
    const { state = '' } = parametersOf(await beginSignIn(browser, 'idpa'))
    const page = await browser.open(`${REDIRECT_URI}?${query(state)}`)
    expect(errorOf(page)).toEqual({ status, error: expect.not.stringMatching(/555|aaaa/) })
    expect(browser.cookies.has('access_token')).toBe(false)
  })
})

describe('return_to', () => {
  it.each([
    ['/docs?a=1&b=%2F#part', `${BASE_URL}/docs?a=1&b=%2F#part`],
    ['/', `${BASE_URL}/`],
    ['/a/../b', `${BASE_URL}/b`],
    ['/%2f/evil.com', `${BASE_URL}/%2f/evil.com`],
    ['/@evil.com', `${BASE_URL}/@evil.com`],
  ])('%s leads to the service', async (returnTo, location) => {
    expect(await signIn(newName(), createBrowser(service), returnTo)).toMatchObject({ status: 302, location })
  })

  it.each([
    '//evil.com',
    '///evil.com',
    '/\\evil.com',
    '\\\\evil.com',
    'https://evil.com',
    'evil.com',
    'javascript:alert(1)',
    '/\t/evil.com',
    '/\n/evil.com',
    '/\r\\evil.com',
    ' //evil.com',
    '//evil.com\\@localhost:9300',
    '//localhost:9301/',
    '',
  ])('%j is refused', async (returnTo) => {
    const browser = createBrowser(service)
    const page = await beginSignIn(browser, 'idpa', returnTo)
    expect(errorOf(page)).toEqual({ status: 400, error: expect.stringMatching(/^return_to: /) })
    expect(browser.cookies.size).toBe(0)
  })

  it('is refused when no cookie could hold it', async () => {
    const page = await beginSignIn(createBrowser(service), 'idpa', `/${'é'.repeat(1000)}`)
    expect(errorOf(page)).toEqual({ status: 400, error: 'return_to: must be shorter' })
    const longest = await beginSignIn(createBrowser(service), 'idpa', `/${'x'.repeat(2047 - BASE_URL.length)}`)
    expect(longest.status).toBe(302)
    expect(longest.setCookies.join().length).toBeLessThan(4096)
  })
})

describe('a provider that is not configured', () => {
  it.each(['idpb', 'idpc', 'IDPA', '__proto__', 'constructor'])('%s is not found', async (name) => {
    const browser = createBrowser(service)
    expect(errorOf(await beginSignIn(browser, name))).toMatchObject({ status: 404 })
    expect(errorOf(await browser.open(`${callbackOf(name)}?code=a&state=b`))).toMatchObject({ status: 404 })
  })

  it.each([
    ['none', { AUTH_MODE: 'none' }],
    ['admin', ADMIN_MODE],
  ])('is every provider in mode %s', async (_, mode) => {
    const environment = {
      ...mode,
      AUTH_IDPA_CLIENT_ID: CLIENT.clientId,
      AUTH_IDPA_CLIENT_SECRET: CLIENT.clientSecret,
    }
    await withService({ worker: false, environment }, async ({ url }) => {
      expect((await call(url, 'GET', '/v1/auth/oauth/idpa', undefined, fromSomewhere())).status).toBe(404)
      expect((await call(url, 'GET', '/v1/auth/config')).body).toMatchObject({ oauth_providers: [] })
    })
  })
})

/** Keeps the variables of sign-in and secrets, because the other service has its own database and keys. */
function withoutPlace(environment: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => /^(AUTH_|SECRETS_|TRUSTED_)/.test(name)))
}
