import { createTokens } from '../../domain/identity/auth/tokens.ts'
import {
  ADMIN,
  ADMIN_VARIABLES,
  bearer,
  createApiKey,
  FULL_MODE,
  fromSomewhere,
  JWT_SECRET,
  logInUser,
  newPassword,
  registerUser,
  type TestUser,
} from '../support/auth.ts'
import { call, expectError } from '../support/http.ts'
import { startService, type TestService } from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false, environment: { ...FULL_MODE, ...ADMIN_VARIABLES } })
})
afterAll(() => service.stop())

const post = (path: string, body: unknown) => call(service.url, 'POST', path, body, fromSomewhere())
const me = (token: string) => call(service.url, 'GET', '/v1/auth/me', undefined, bearer(token))
const refresh = (refresh_token: string) => post('/v1/auth/refresh', { refresh_token })
/** Returns an expired token of the same login. */
async function expired(accessToken: string): Promise<string> {
  const { userId, loginId } = (await service.platform.deps.auth.tokens.readAccess(accessToken)) ?? {}
  const tokens = createTokens({ secret: Buffer.from(JWT_SECRET), accessSeconds: -1, refreshSeconds: 1 })
  return (await tokens.issue({ userId: userId ?? '', loginId: loginId ?? '', generation: 0 })).access_token
}
const newEmail = () => `somebody-${Math.random().toString(36).slice(2)}@example.com`

describe('register', () => {
  it('creates a user who is signed in and a member of the default organization', async () => {
    const email = newEmail()
    const { status, body } = await post('/v1/auth/register', { email, password: newPassword(), name: ' Ann ' })
    expect(status).toBe(201)
    expect(body).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 900,
      refresh_token: expect.any(String),
    })
    expect((await me(body.access_token)).body).toMatchObject({
      email,
      name: 'Ann',
      roles: ['member'],
      organizations: [
        { public_id: 'org_00000000000000000000000000000001', name: 'Default Organization', role: 'member' },
      ],
    })
  })

  it('lets only one of many concurrent users have an e-mail address, whatever its case', async () => {
    const email = newEmail()
    const emails = [email, email.toUpperCase(), ` ${email} `, email, email.toUpperCase(), email]
    const register = (each: string) => post('/v1/auth/register', { email: each, password: newPassword(), name: 'X' })
    const answers = await Promise.all(emails.map(register))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409, 409])
    for (const answer of answers) if (answer.status !== 201) expectError(answer, 409, /^email: is already registered/)
    expect(await service.platform.deps.db.user.count({ where: { email } })).toBe(1)
  })

  it.each<[string, object, RegExp]>([
    ['no e-mail', { email: 'nobody' }, /^email: must be an e-mail/],
    ['SQL for an e-mail', { email: "x'; DROP TABLE users; --@example.com" }, /^email: must be an e-mail/],
    ['a long e-mail', { email: `${'x'.repeat(300)}@example.com` }, /^email: /],
    ['a NUL in the e-mail', { email: 'a\u0000@example.com' }, /./],
    ['a short password', { password: '1234567' }, /^password: must have at least 8 characters/],
    ['a password of few characters and many bytes', { password: '😀😀😀😀' }, /^password: must have at least 8/],
    ['a password of 10,000 characters', { password: 'x'.repeat(10_000) }, /^password: must be at most 1024 bytes/],
    ['a password that is not a text', { password: 12345678 }, /^password: /],
    ['a blank name', { name: '  ' }, /^name: must not be empty/],
    ['a long name', { name: 'x'.repeat(2049) }, /^name: must be at most 2048 bytes/],
    ['no name', { name: undefined }, /^name: /],
  ])('refuses %s', async (_what, wrong, sentence) => {
    const body = { email: newEmail(), password: newPassword(), name: 'X', ...wrong }
    expectError(await post('/v1/auth/register', body), 400, sentence)
  })

  it.each(['12345678', 'x'.repeat(1024), '        ', 'пароль-пароль'])(
    'takes the password %.20j, and no other',
    async (password) => {
      const email = newEmail()
      expect((await post('/v1/auth/register', { email, password, name: 'X' })).status).toBe(201)
      expect((await post('/v1/auth/login', { email, password })).status).toBe(200)
      expect((await post('/v1/auth/login', { email, password: `${password.slice(0, -1)}!` })).status).toBe(401)
    },
  )

  it('stores the argon2id hash of a password only', async () => {
    const { id, password } = await registerUser(service.url)
    const row = await service.platform.deps.db.user.findUniqueOrThrow({ where: { id } })
    expect(row.passwordHash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    expect(JSON.stringify(row)).not.toContain(password)
  })
})

describe('login', () => {
  it('gives tokens for the right password, in whatever case the e-mail is written', async () => {
    const { email, password, id } = await registerUser(service.url)
    const again = await logInUser(service.url, { email: email.toUpperCase(), password })
    expect(again.id).toBe(id)
  })

  it('fails in the same way for any wrong input', async () => {
    const { email } = await registerUser(service.url)
    const provider = await service.platform.deps.db.user.create({
      data: { id: crypto.randomUUID(), email: newEmail(), name: 'X', provider: 'idpa', subject: newEmail() },
    })
    const attempts = [
      { email, password: 'not the password' },
      { email: newEmail(), password: 'not the password' },
      { email: "' OR 1=1 --", password: "' OR 1=1 --" },
      { email: '', password: '' },
      { email: provider.email, password: '' },
      { email: 'anonymous@local', password: 'anonymous' },
    ]
    const answers = await Promise.all(attempts.map((attempt) => post('/v1/auth/login', attempt)))
    for (const answer of answers) expectError(answer, 401, /^The e-mail or the password is wrong$/)
  })

  it.each([{}, { email: 'a@example.com' }, { email: 1, password: [] }, [], null, 'x', '{'])(
    'refuses %j',
    async (body) => {
      expect((await post('/v1/auth/login', body)).status).toBe(400)
    },
  )

  it('ends the oldest login with the 101st', async () => {
    const { id, accessToken, email, password } = await registerUser(service.url)
    const { db } = service.platform.deps
    const old = Array.from({ length: 99 }, () => ({
      id: crypto.randomUUID(),
      userId: id,
      expiresAt: new Date(Date.now() + 1e6),
    }))
    await db.refreshToken.createMany({ data: old })
    const { accessToken: latest } = await logInUser(service.url, { email, password })
    expect((await me(accessToken)).status).toBe(401)
    expect((await me(latest)).status).toBe(200)
    expect(await db.refreshToken.count({ where: { userId: id } })).toBe(100)
  })
})

describe('refresh', () => {
  it('gives new tokens, by the body or by the cookie', async () => {
    const { refreshToken, id } = await registerUser(service.url)
    const { status, body } = await refresh(refreshToken)
    expect(status).toBe(200)
    expect(body.refresh_token).not.toBe(refreshToken)
    expect((await me(body.access_token)).body.id).toBe(id)
    const headers = {
      ...fromSomewhere(),
      Cookie: `refresh_token=${body.refresh_token}`,
      Origin: 'http://localhost:9300',
    }
    const byCookie = await call(service.url, 'POST', '/v1/auth/refresh', undefined, headers)
    expect(byCookie.status).toBe(200)
    expect((await me(byCookie.body.access_token)).body.id).toBe(id)
  })

  it('ends the whole login when a used token is used again', async () => {
    const { refreshToken, accessToken, email, password } = await registerUser(service.url)
    const other = await logInUser(service.url, { email, password })
    const { body } = await refresh(refreshToken)
    expectError(await refresh(refreshToken), 401, /sign in again/)
    expectError(await refresh(body.refresh_token), 401, /sign in again/)
    for (const token of [accessToken, body.access_token]) expect((await me(token)).status).toBe(401)
    expect((await me(other.accessToken)).status).toBe(200)
  })

  it('accepts at most one of several concurrent uses', async () => {
    const { refreshToken } = await registerUser(service.url)
    const answers = await Promise.all(Array.from({ length: 8 }, () => refresh(refreshToken)))
    expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1)
    expect((await refresh(refreshToken)).status).toBe(401)
  })

  it.each(['', 'x', 'ask_00', 'a.b.c', 'x'.repeat(4096)])('refuses %.20j', async (token) => {
    expectError(await refresh(token), 401, /sign in again|is required/)
  })

  it('refuses a missing token, and a malformed one', async () => {
    expectError(await post('/v1/auth/refresh', undefined), 401, /^refresh_token: is required/)
    expectError(await post('/v1/auth/refresh', {}), 401, /^refresh_token: is required/)
    expectError(await post('/v1/auth/refresh', { refresh_token: 1 }), 400, /^refresh_token: /)
    expectError(await post('/v1/auth/refresh', { refresh_token: 'x'.repeat(4097) }), 400, /^refresh_token: /)
  })

  it('stops working once the user’s rows are gone or have expired', async () => {
    const { db } = service.platform.deps
    const [gone, old] = await Promise.all([registerUser(service.url), registerUser(service.url)])
    await db.refreshToken.deleteMany({ where: { userId: gone.id } })
    await db.refreshToken.updateMany({ where: { userId: old.id }, data: { expiresAt: new Date(0) } })
    for (const { refreshToken, accessToken } of [gone, old]) {
      expect((await me(accessToken)).status).toBe(401)
      expect((await refresh(refreshToken)).status).toBe(401)
    }
  })
})

describe('logout', () => {
  it('ends the login at once, and only that one', async () => {
    const user = await registerUser(service.url)
    const other = await logInUser(service.url, user)
    const { key } = await createApiKey(service.url, user.headers)
    expect((await call(service.url, 'POST', '/v1/auth/logout', undefined, user.headers)).status).toBe(204)
    expect((await me(user.accessToken)).status).toBe(401)
    expect((await refresh(user.refreshToken)).status).toBe(401)
    expect((await me(other.accessToken)).status).toBe(200)
    expect((await me(key)).status).toBe(200)
  })

  it('needs a token of a login, and succeeds again after the login has ended', async () => {
    const logOut = (headers: Record<string, string>) => call(service.url, 'POST', '/v1/auth/logout', undefined, headers)
    for (const headers of [{}, bearer('x'), bearer(`ask_${'0'.repeat(64)}`)]) {
      expectError(await logOut(headers), 401, /^Authentication required$/)
    }
    const { headers } = await registerUser(service.url)
    expect([(await logOut(headers)).status, (await logOut(headers)).status]).toEqual([204, 204])
  })

  it('has nothing to end for an API key, which goes on', async () => {
    const { headers } = await registerUser(service.url)
    const { key } = await createApiKey(service.url, headers)
    expect((await call(service.url, 'POST', '/v1/auth/logout', {}, bearer(key))).status).toBe(204)
    expect((await me(key)).status).toBe(200)
  })

  it.each<[string, (user: TestUser) => Promise<{ headers: Record<string, string> }>]>([
    ['an access token that has expired', async ({ accessToken }) => ({ headers: bearer(await expired(accessToken)) })],
    ['a refresh token in the header', async ({ refreshToken }) => ({ headers: bearer(refreshToken) })],
    [
      'a spent refresh token',
      async ({ refreshToken }) => {
        await refresh(refreshToken)
        return { headers: bearer(refreshToken) }
      },
    ],
    [
      'a token in the header, whatever cookies come along',
      async ({ headers }) => ({
        headers: { ...headers, Cookie: 'access_token=x; refresh_token=y', Origin: 'https://elsewhere.example' },
      }),
    ],
  ])('takes %s', async (_what, make) => {
    const user = await registerUser(service.url)
    const { headers } = await make(user)
    expect((await call(service.url, 'POST', '/v1/auth/logout', undefined, headers)).status).toBe(204)
    expect((await me(user.accessToken)).status).toBe(401)
  })

  it('cannot be done by a page of another site, which sends no cookies', async () => {
    const answer = await call(service.url, 'POST', '/v1/auth/logout', undefined, { Origin: 'https://evil.example' })
    expectError(answer, 401, /^Authentication required$/)
    expect(answer.headers.getSetCookie()).toEqual([])
  })

  it('needs only the refresh token’s cookie, and clears all cookies', async () => {
    const { refreshToken, accessToken } = await registerUser(service.url)
    const headers = { Cookie: `refresh_token=${refreshToken}`, Origin: 'http://localhost:9300' }
    const { status, headers: answered } = await call(service.url, 'POST', '/v1/auth/logout', undefined, headers)
    expect(status).toBe(204)
    expect(answered.getSetCookie().map((cookie) => cookie.split(';')[0])).toEqual([
      'access_token=',
      'refresh_token=',
      'org_id=',
    ])
    expect((await me(accessToken)).status).toBe(401)
  })
})

describe('the administrator of the environment', () => {
  it('owns the default organization, also in mode full', async () => {
    const admin = await logInUser(service.url, ADMIN)
    const { body } = await call(service.url, 'GET', '/v1/auth/me', undefined, admin.headers)
    expect(body).toMatchObject({ email: ADMIN.email, roles: ['owner'], organizations: [{ role: 'owner' }] })
  })
})
