import {
  ADMIN,
  ADMIN_MODE,
  ADMIN_VARIABLES,
  bearer,
  createApiKey,
  FULL_MODE,
  fromSomewhere,
  logInUser,
} from '../support/auth.ts'
import { unknownIds } from '../support/belongings.ts'
import { call } from '../support/http.ts'
import { type Planned, plan } from '../support/requests.ts'
import { startService, type TestService, withService } from '../support/service.ts'
import { endpointOf, operations, type Received, send } from '../support/walk.ts'

/** Operations open to everybody. All others need a credential. */
const FOR_EVERYBODY = [
  'GET /health',
  'GET /health/ready',
  'GET /health/started',
  'GET /v1/auth/config',
  'POST /v1/auth/login',
  'POST /v1/auth/register',
  'POST /v1/auth/refresh',
  'GET /v1/auth/oauth/{provider}',
  'GET /v1/auth/callback/{provider}',
  'GET /v1/mcp-sign-in/callback',
]
const OUTSIDE_THE_DOCUMENT = ['/console', '/docs', '/embed.js', '/join', '/openapi.json']
const guarded = operations.filter((operation) => !FOR_EVERYBODY.includes(operation))

const REFUSAL = '{"error":"Authentication required","code":"unauthenticated"}'

type Headers = Record<string, string>
type Credential = [what: string, headers: Headers]

/** Returns headers with a forged, malformed, ended or missing credential. */
async function worthless(url: string): Promise<Credential[]> {
  const [user, gone] = [await logInUser(url, ADMIN), await logInUser(url, ADMIN)]
  await call(url, 'POST', '/v1/auth/logout', undefined, gone.headers)
  const revoked = await createApiKey(url, user.headers)
  await call(url, 'DELETE', `/v1/auth/api-keys/${revoked.id}`, undefined, user.headers)
  const unknown = `ask_${'0123456789abcdef'.repeat(4)}`
  const [head, body, signature = ''] = user.accessToken.split('.')
  const others = `${head}.${body}.${signature.split('').reverse().join('')}`
  return [
    ['nothing', {}],
    ['an empty header', { Authorization: '' }],
    ['a scheme alone', { Authorization: 'Bearer' }],
    ['a word', bearer('garbage')],
    ['a password', { Authorization: `Basic ${btoa(`${ADMIN.email}:${ADMIN.password}`)}` }],
    ['an unknown API key', bearer(unknown)],
    ['an unknown API key by its own scheme', { Authorization: `ApiKey ${unknown}` }],
    ['an unknown API key by no scheme', { Authorization: unknown }],
    ['an API key that was revoked', bearer(revoked.key)],
    ['a refresh token', bearer(user.refreshToken)],
    ['the token of a login that was ended', bearer(gone.accessToken)],
    ['a token that somebody else has signed', bearer(others)],
    ['a cookie of that kind', { Cookie: `access_token=${others}` }],
    ['the refresh token as a cookie', { Cookie: `refresh_token=${user.refreshToken}` }],
  ]
}

/** Logout accepts any token of a login. */
const LOGOUT = 'POST /v1/auth/logout'
const OF_A_LOGIN = ['a refresh token', 'the token of a login that was ended', 'the refresh token as a cookie']
const worthlessFor = (operation: string, credentials: Credential[]): Credential[] =>
  operation === LOGOUT ? credentials.filter(([what]) => !OF_A_LOGIN.includes(what)) : credentials

/** Returns the valid request, and the same request with errors that must not show before authentication. */
function variants(operation: string): [Planned, ...Planned[]] {
  const [right] = plan(operation, unknownIds(), unknownIds())
  if (right === undefined) throw new Error(`test/support/requests.ts has no entry for "${operation}"`)
  const bodies =
    right.method === 'GET'
      ? [{ ...right, method: 'HEAD' }]
      : [
          { ...right, body: '{"broken":' },
          { ...right, body: '[]' },
          { ...right, body: 'text', headers: { 'Content-Type': 'text/csv' } },
          { ...right, body: {}, headers: { 'Idempotency-Key': 'x'.repeat(300) } },
        ]
  return [
    right,
    { ...right, path: `/api${right.path}` },
    { ...right, path: right.path.replace(/(\w+_)?[0-9a-f-]{32,36}/g, 'no-id') },
    { ...right, path: `${right.path.split('?')[0]}?limit=-1&since_id=none&search=${'x'.repeat(3000)}` },
    { ...right, headers: { Origin: 'https://elsewhere.example' } },
    ...bodies,
  ]
}

const DEFAULT_ORGANIZATION = 'org_00000000000000000000000000000001'
const ORGANIZATIONS: Credential[] = [
  ['an existing one', { 'X-Org-Id': DEFAULT_ORGANIZATION }],
  ['an unknown one', { 'X-Org-Id': unknownIds().organization }],
  ['a malformed id, in the header', { 'X-Org-Id': 'no-id' }],
  ['an unknown one, in the cookie', { Cookie: `org_id=${unknownIds().organization}` }],
  ['a malformed id, in the cookie', { Cookie: 'org_id=no-id' }],
]

/** Credentials tried in each organization: none, and one of each kind that was valid once. */
const IN_ORGANIZATIONS = ['nothing', 'an API key that was revoked', 'the token of a login that was ended']

function expectRefusal(sent: object, { status, headers, body }: Received): void {
  const isHead = 'method' in sent && sent.method === 'HEAD'
  const seen = { sent, status, body, challenge: headers['www-authenticate'] }
  expect(seen).toEqual({ sent, status: 401, body: isHead ? '' : REFUSAL, challenge: 'Bearer' })
}

async function expectRefused(url: string, sent: Planned, headers: Headers): Promise<void> {
  const both = { ...sent.headers, ...headers }
  if (sent.headers?.Cookie && headers.Cookie) both.Cookie = `${headers.Cookie}; ${sent.headers.Cookie}`
  expectRefusal({ ...sent, headers: both }, await send(url, { ...sent, headers: both }))
}

describe('the list of public operations', () => {
  it('is the one in the contract', () => {
    const inContract = operations.filter((operation) => endpointOf(operation).access === 'public')
    expect(inContract.sort()).toEqual([...FOR_EVERYBODY].sort())
  })
})

describe.each([
  ['admin', ADMIN_MODE],
  ['full', { ...FULL_MODE, ...ADMIN_VARIABLES }],
])('in mode %s', (mode, environment) => {
  let service: TestService
  let credentials: Credential[]
  beforeAll(async () => {
    service = await startService({ worker: false, environment })
    credentials = await worthless(service.url)
  })
  afterAll(() => service.stop())

  it('all other operations refuse unauthenticated requests', async () => {
    for (const operation of guarded) {
      const [sent] = variants(operation)
      await Promise.all(
        worthlessFor(operation, credentials).map(([, headers]) => expectRefused(service.url, sent, headers)),
      )
    }
    process.stdout.write(`no credentials, mode ${mode}: ${guarded.length} operations, ${credentials.length} ways\n`)
  })

  it.each(['nothing', 'an API key that was revoked'])(
    'do so whatever else is wrong with a request: %s',
    async (what) => {
      const headers = credentials.find(([name]) => name === what)?.[1] ?? {}
      for (const operation of guarded)
        await Promise.all(variants(operation).map((sent) => expectRefused(service.url, sent, headers)))
    },
  )

  it.each(ORGANIZATIONS)('do so without revealing an organization: %s', async (_, organization) => {
    const some = credentials.filter(([what]) => IN_ORGANIZATIONS.includes(what))
    expect(some).toHaveLength(IN_ORGANIZATIONS.length)
    for (const operation of guarded) {
      const [sent] = variants(operation)
      const inOrganization = { ...sent, headers: organization }
      await Promise.all(
        worthlessFor(operation, some).map(([, headers]) => expectRefused(service.url, inOrganization, headers)),
      )
    }
  })

  it('public operations answer', async () => {
    for (const operation of FOR_EVERYBODY) {
      const [sent] = variants(operation)
      const { status, body } = await send(service.url, { ...sent, headers: fromSomewhere() })
      expect({ operation, status, isAnswer: body !== REFUSAL && status < 500 }).toMatchObject({ isAnswer: true })
    }
    for (const path of OUTSIDE_THE_DOCUMENT) expect((await call(service.url, 'GET', path)).status).toBe(200)
  })
})

describe('in mode none', () => {
  it('all operations answer unauthenticated requests', async () => {
    await withService({ worker: false }, async ({ url }) => {
      for (const operation of guarded) {
        const [sent] = variants(operation)
        const { status } = await send(url, sent)
        expect({ operation, status, isAnswer: ![401, 403].includes(status) && status < 500 }).toMatchObject({
          isAnswer: true,
        })
      }
    })
  })
})
