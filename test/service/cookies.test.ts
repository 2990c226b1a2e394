import { ADMIN, ADMIN_VARIABLES, FULL_MODE, fromSomewhere, registerUser, type TestUser } from '../support/auth.ts'
import { type Answer, call, expectError } from '../support/http.ts'
import { startService, type TestService, withService } from '../support/service.ts'

const OWN = 'http://localhost:9300'

let service: TestService
let user: TestUser
beforeAll(async () => {
  service = await startService({ worker: false, environment: FULL_MODE })
  user = await registerUser(service.url)
})
afterAll(() => service.stop())

const cookies = (): Record<string, string> => ({
  Cookie: `access_token=${user.accessToken}; refresh_token=${user.refreshToken}`,
})
const create = (headers: Record<string, string>) =>
  call(service.url, 'POST', '/v1/sessions', {}, { ...cookies(), ...headers })
const logIn = (url: string, headers: Record<string, string> = {}, credentials: object = user) =>
  call(url, 'POST', '/v1/auth/login', credentials, { ...fromSomewhere(), ...headers })
const attributes = (answer: Answer, name: string): string[] =>
  answer.headers
    .getSetCookie()
    .find((each) => each.startsWith(`${name}=`))
    ?.split('; ')
    .slice(1)
    .map((each) => each.replace(/=.*(GMT)$/, '')) ?? []

describe('cookies', () => {
  it('are set by a login: not for scripts, not for other sites', async () => {
    const answer = await logIn(service.url)
    for (const name of ['access_token', 'refresh_token']) {
      expect(attributes(answer, name)).toEqual(['path=/', 'expires', 'samesite=lax', 'httponly'])
    }
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  it('are Secure wherever the service is on the network', async () => {
    const environment = { ...FULL_MODE, ...ADMIN_VARIABLES, AUTH_BASE_URL: 'https://agents.example.com' }
    await withService({ worker: false, environment }, async ({ url }) => {
      // Behind a proxy, requests reach the service under its own local name.
      const answer = await logIn(url, {}, ADMIN)
      expect(attributes(answer, 'access_token')).toEqual(['path=/', 'expires', 'samesite=lax', 'secure', 'httponly'])
    })
    const elsewhere = await logIn(service.url, { 'X-Forwarded-Host': 'agents.example.com' })
    expect(attributes(elsewhere, 'access_token')).toContain('secure')
  })

  it('authenticate the user for reads', async () => {
    for (const headers of [{}, { Origin: 'https://evil.example' }] as Record<string, string>[]) {
      const me = await call(service.url, 'GET', '/v1/auth/me', undefined, { ...cookies(), ...headers })
      expect(me.body.id).toBe(user.id)
    }
  })

  it('change something only from the service’s own pages', async () => {
    for (const origin of [OWN, service.url]) expect((await create({ Origin: origin })).status).toBe(201)
    const others = [
      'https://evil.example',
      'null',
      '',
      'https://localhost:9300',
      'http://localhost',
      `${OWN}.evil.example`,
    ]
    for (const origin of others) {
      expectError(await create(origin === '' ? {} : { Origin: origin }), 403, /Origin header/)
    }
    const session = (await create({ Origin: OWN })).body.id
    for (const [method, path, body] of [
      ['PATCH', `/v1/sessions/${session}`, { title: 'X' }],
      ['PUT', `/v1/sessions/${session}/pin`, undefined],
      ['DELETE', `/v1/sessions/${session}`, undefined],
      ['POST', '/v1/users/me/switch-org', { org_id: 'org_00000000000000000000000000000001' }],
      ['POST', '/v1/auth/refresh', undefined],
      ['POST', '/v1/auth/logout', undefined],
    ] as const) {
      const answer = await call(service.url, method, path, body, { ...cookies(), Origin: 'https://evil.example' })
      expectError(answer, 403, /Origin header/)
    }
    expect((await call(service.url, 'GET', `/v1/sessions/${session}`, undefined, cookies())).body.title).toBeNull()
  })

  it('need no Origin when a token authenticates the request', async () => {
    expect((await create({ ...user.headers, Origin: 'https://evil.example' })).status).toBe(201)
  })

  it('do not help when the Authorization header is wrong', async () => {
    expectError(await create({ Authorization: 'Bearer x', Origin: OWN }), 401, /^Authentication required$/)
  })

  it('cannot be obtained by a form of another site', async () => {
    const form = { 'Content-Type': 'text/plain', Origin: 'https://evil.example' }
    const answer = await call(service.url, 'POST', '/v1/auth/login', JSON.stringify(user), {
      ...form,
      ...fromSomewhere(),
    })
    expect(answer.status).toBe(415)
  })
})

describe('cookies with CORS_ALLOWED_ORIGINS', () => {
  const APP = 'https://app.example'
  const OTHERS = ['http://app.example', 'https://app.example:8443', 'https://www.app.example', 'https://evil.example']
  let trusting: TestService
  let member: Record<string, string>
  beforeAll(async () => {
    // A careless list: only its first origin counts.
    const environment = { ...FULL_MODE, CORS_ALLOWED_ORIGINS: `${APP}, *, null, https://evil.example/` }
    trusting = await startService({ worker: false, environment })
    const { accessToken, refreshToken } = await registerUser(trusting.url)
    member = { Cookie: `access_token=${accessToken}; refresh_token=${refreshToken}` }
  })
  afterAll(() => trusting.stop())

  it.each([
    ['a listed origin', { Origin: APP, 'Sec-Fetch-Site': 'same-site' }, 201],
    ['the service’s own origin', { Origin: OWN }, 201],
    ...OTHERS.map((Origin): [string, Record<string, string>, number] => [Origin, { Origin }, 403]),
    ['an opaque origin', { Origin: 'null' }, 403],
    ['a star', { Origin: '*' }, 403],
    ['no origin', {}, 403],
    ['no origin, by a page of another site', { 'Sec-Fetch-Site': 'cross-site' }, 403],
  ])('allow a change from %s only if it is listed', async (_, headers, status) => {
    const answer = await call(trusting.url, 'POST', '/v1/sessions', {}, { ...member, ...(headers as object) })
    if (status === 403) expectError(answer, 403, /Origin header/)
    else expect(answer.status).toBe(status)
  })

  it('let a listed origin refresh and end its login', async () => {
    for (const [path, status] of [
      ['refresh', 200],
      ['logout', 204],
    ] as const) {
      const { accessToken, refreshToken } = await registerUser(trusting.url)
      const headers = { Cookie: `access_token=${accessToken}; refresh_token=${refreshToken}`, ...fromSomewhere() }
      const post = (Origin: string) => call(trusting.url, 'POST', `/v1/auth/${path}`, undefined, { ...headers, Origin })
      expectError(await post('https://evil.example'), 403, /Origin header/)
      expect((await post(APP)).status).toBe(status)
    }
  })

  it('are allowed by preflights and answers for a listed origin alone', async () => {
    const ask = (method: string, Origin: string) =>
      call(trusting.url, method, '/v1/sessions', undefined, {
        ...(method === 'OPTIONS' ? { 'Access-Control-Request-Method': 'POST' } : member),
        Origin,
      })
    for (const method of ['OPTIONS', 'GET']) {
      const { headers } = await ask(method, APP)
      expect(headers.get('access-control-allow-origin')).toBe(APP)
      expect(headers.get('access-control-allow-credentials')).toBe('true')
      for (const origin of OTHERS) {
        const others = (await ask(method, origin)).headers
        expect(others.get('access-control-allow-origin')).toBeFalsy()
        expect(others.get('access-control-allow-credentials')).toBeFalsy()
      }
    }
  })
})
