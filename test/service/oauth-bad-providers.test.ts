import type { ServerResponse } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'
import { createOpenIdProvider, type OpenIdOptions } from '../../domain/identity/auth/open-id-provider.ts'
import { bearer, FULL_MODE } from '../support/auth.ts'
import { beginSignIn, callbackFor, createBrowser, errorOf, type Page, parametersOf } from '../support/browser.ts'
import { type Faults, type FaultyProvider, type Path, startFaultyProvider } from '../support/faulty-provider.ts'
import { call } from '../support/http.ts'
import { CLIENT, REDIRECT_URI } from '../support/identity-provider.ts'
import { startService, type TestService } from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false, environment: FULL_MODE })
})
afterAll(() => service.stop())

const providers: FaultyProvider[] = []
afterEach(async () => {
  await Promise.all(providers.splice(0).map((provider) => provider.close()))
})

function useProvider(issuer: string, options: Partial<OpenIdOptions> = {}): void {
  const all = { ...CLIENT, issuer, redirectUri: REDIRECT_URI, allowedDomains: [], ...options }
  service.platform.deps.auth.identityProviders.idpa = createOpenIdProvider(all)
}

/** Signs in at a provider that has these faults from the start, or only after the redirect to it. */
async function signIn(
  faults: Faults,
  { from = 'the start', ...options }: { from?: string } & Partial<OpenIdOptions> = {},
) {
  const provider = await startFaultyProvider(from === 'the start' ? faults : {})
  providers.push(provider)
  useProvider(provider.issuer)
  const browser = createBrowser(service)
  const begun = await beginSignIn(browser, 'idpa')
  if (begun.status !== 302) return { provider, browser, page: begun }
  provider.nonce = parametersOf(begun).nonce ?? ''
  provider.faults = faults
  // Set only now, because a short timeout must not end the earlier steps, which are to succeed.
  if (options.timeoutMs !== undefined) useProvider(provider.issuer, options)
  return { provider, browser, page: await browser.open(callbackFor('idpa', begun)) }
}

const UNVERIFIED = { status: 401, error: "The identity provider's answer could not be verified; begin again" }
const SILENT = { status: 502, error: 'The identity provider does not answer' }

function expectNobody(page: Page, expected: object): void {
  expect(errorOf(page)).toEqual(expected)
  expect(page.setCookies.filter((cookie) => /^(access|refresh)_token=/.test(cookie))).toEqual([])
}

describe('an answer that cannot be believed', () => {
  const now = Math.floor(Date.now() / 1000)
  it.each<[string, Faults]>([
    ['an ID token of another issuer', { claims: { iss: 'https://accounts.example.com' } }],
    ['an ID token for another client', { claims: { aud: 'another-client' } }],
    [
      'an ID token for several clients that another client requested',
      { claims: { aud: [CLIENT.clientId, 'b'], azp: 'b' } },
    ],
    ['an ID token that has expired', { claims: { iat: now - 7200, exp: now - 3600 } }],
    ['an ID token that is not valid yet', { claims: { nbf: now + 3600 } }],
    ['an ID token without an end', { without: ['exp'] }],
    ["another sign-in's nonce", { claims: { nonce: 'of-another-sign-in' } }],
    ['no nonce', { without: ['nonce'] }],
    ['no subject', { without: ['sub'] }],
    ['an empty subject', { claims: { sub: '' } }],
    ['a subject that is too long', { claims: { sub: 'x'.repeat(256) } }],
    ['a subject with NUL in it', { claims: { sub: 'x\0y' } }],
    ['no signature', { sign: 'none' }],
    ["another key's signature", { sign: 'another key' }],
    ["the client secret's signature", { sign: 'the client secret' }],
    ['no ID token', { sign: 'nothing' }],
    ["another user's userinfo", { without: ['email'], userinfo: { sub: 'another', email: 'a@example.com' } }],
  ])('is %s', async (_, faults) => {
    expectNobody((await signIn(faults)).page, UNVERIFIED)
  })

  it.each<[string, Faults['answer']]>([
    ['a code is refused', { '/token': json(400, { error: 'invalid_grant' }) }],
    ['an answer is not JSON', { '/token': (response) => response.end('<html>') }],
    ['an answer is not an object', { '/token': json(200, []) }],
    ['an answer has no token', { '/token': json(200, { token_type: 'bearer' }) }],
    ['the keys are malformed', { '/jwks': json(200, { keys: 'none' }) }],
    ['keys are not found', { '/jwks': json(404, {}) }],
  ])('is one where %s', async (_, answer) => {
    expectNobody((await signIn({ answer }, { from: 'then on' })).page, UNVERIFIED)
  })

  it('is accepted when nothing is wrong with it', async () => {
    const { page, browser } = await signIn({
      claims: { name: `  ${'é'.repeat(2000)}\0`, picture: 'javascript:alert(1)' },
    })
    expect(page.status).toBe(302)
    const headers = bearer(browser.cookies.get('access_token') ?? '')
    const { body } = await call(service.url, 'GET', '/v1/auth/me', undefined, headers)
    expect(body).toMatchObject({ name: 'é'.repeat(1024), avatar_url: null })
  })
})

describe('somebody who may not sign in', () => {
  it.each<[string, Faults]>([
    ['whose e-mail is not verified', { claims: { email_verified: false } }],
    ['whose e-mail is verified in words', { claims: { email_verified: 'true' } }],
    ['whose e-mail is not said to be verified', { without: ['email_verified'] }],
    ['who has no e-mail', { without: ['email'] }],
    [
      'whose userinfo says it is not verified',
      { without: ['email'], userinfo: { email: 'a@b.example', email_verified: false } },
    ],
    ['whose e-mail is malformed', { claims: { email: 'nobody' } }],
    ['whose e-mail is a list', { claims: { email: ['a@example.com'] } }],
    ['whose e-mail has two ends', { claims: { email: 'a@evil.example@example.com' } }],
    ['whose e-mail has a line break', { claims: { email: 'a@example.com\n' } }],
    ['whose e-mail is too long', { claims: { email: `${'x'.repeat(250)}@example.com` } }],
  ])('is one %s', async (_, faults) => {
    expectNobody((await signIn(faults)).page, { status: 403, error: expect.stringMatching(/verified e-mail/) })
  })
})

describe('a provider that does not answer', () => {
  const MiB = 1024 * 1024
  const faults: [string, (response: ServerResponse) => void][] = [
    ['an error of its own', json(500, { error: 'server_error' })],
    ['that it is busy', json(503, {})],
    ['that it was asked too often', json(429, {})],
    ['with the address of another', (response) => response.writeHead(302, { Location: '/elsewhere' }).end()],
    ['with a torn connection', (response) => response.destroy()],
    [
      'with half an answer',
      (response) => void response.writeHead(200, { 'Content-Length': '10' }).write('{', () => response.destroy()),
    ],
    ['without an end', (response) => void pourOut(response)],
    ['with more than 1 MiB', json(200, { padding: 'x'.repeat(MiB) })],
  ]
  const paths: Path[] = ['/.well-known/openid-configuration', '/token', '/jwks', '/userinfo']
  it.each(paths.flatMap((path) => faults.map(([name, fault]) => [path, name, fault] as const)))(
    'at %s answers %s',
    async (path, _, fault) => {
      const { page, provider } = await signIn({ without: ['email'], answer: { [path]: fault } })
      expectNobody(page, SILENT)
      expect(provider.requests.at(-1)).toBe(path)
    },
  )

  it.each(paths.slice(1))('is silent at %s', async (path) => {
    const faults = { without: ['email'], answer: { [path]: () => {} } }
    // Long enough for the earlier requests to be answered in time.
    const { page, provider } = await signIn(faults, { from: 'then on', timeoutMs: 5000 })
    expectNobody(page, SILENT)
    expect(provider.requests.at(-1)).toBe(path)
  })

  it('is silent when asked for its metadata', async () => {
    const provider = await startFaultyProvider({ answer: { '/.well-known/openid-configuration': () => {} } })
    providers.push(provider)
    useProvider(provider.issuer, { timeoutMs: 100 })
    expectNobody(await beginSignIn(createBrowser(service), 'idpa'), SILENT)
  })

  it('is not there at all', async () => {
    const provider = await startFaultyProvider()
    await provider.close()
    useProvider(provider.issuer)
    expectNobody(await beginSignIn(createBrowser(service), 'idpa'), SILENT)
  })

  it('does not know this service', async () => {
    const answer = { '/token': json(401, { error: 'invalid_client' }) }
    const error = "The identity provider does not accept this service's client id, secret or redirect URI"
    expectNobody((await signIn({ answer })).page, { status: 502, error })
  })
})

describe('the metadata of a provider', () => {
  it.each<[string, Record<string, unknown>]>([
    ['is of another issuer', { issuer: 'https://accounts.example.com' }],
    ['has no issuer', { issuer: undefined }],
    ['has nowhere to sign in', { authorization_endpoint: undefined }],
  ])('is refused if it %s', async (_, metadata) => {
    const error = 'The identity provider has no valid discovery document'
    expectNobody((await signIn({ metadata })).page, { status: 502, error })
  })

  it.each(['0.0.0.0', '[::ffff:127.0.0.1]'])('sends no secret in the clear to %s', async (host) => {
    const provider = await startFaultyProvider()
    providers.push(provider)
    provider.faults = { metadata: { token_endpoint: `http://${host}:${new URL(provider.issuer).port}/token` } }
    useProvider(provider.issuer)
    const browser = createBrowser(service)
    const begun = await beginSignIn(browser, 'idpa')
    expectNobody(await browser.open(callbackFor('idpa', begun)), SILENT)
    expect(provider.requests).toEqual(['/.well-known/openid-configuration'])
  })

  it('is fetched once for many sign-ins, and again if it was unusable', async () => {
    const provider = await startFaultyProvider({ answer: { '/.well-known/openid-configuration': json(500, {}) } })
    providers.push(provider)
    useProvider(provider.issuer)
    const begin = () => beginSignIn(createBrowser(service), 'idpa')
    expect((await begin()).status).toBe(502)
    expect((await begin()).status).toBe(502)
    expect(provider.requests).toHaveLength(2)
    provider.faults = {}
    const pages = await Promise.all(Array.from({ length: 10 }, begin))
    expect(pages.map(({ status }) => status)).toEqual(Array(10).fill(302))
    expect((await begin()).status).toBe(302)
    expect(provider.requests).toHaveLength(3)
  })
})

function json(status: number, body: unknown) {
  return (response: ServerResponse): void => {
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
  }
}

/** Writes as much as the client takes until it closes the connection. */
async function pourOut(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'Content-Type': 'application/json' })
  const chunk = 'x'.repeat(64 * 1024)
  while (!response.destroyed) {
    if (response.writableNeedDrain) await turn()
    else response.write(chunk)
  }
}
