import { createHmac, generateKeyPairSync, randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { SignJWT } from 'jose'
import { FULL_MODE, JWT_SECRET, registerUser, type TestUser } from '../support/auth.ts'
import { call, expectError } from '../support/http.ts'
import { addUser } from '../support/organizations.ts'
import { head } from '../support/raw.ts'
import { startService, type TestService } from '../support/service.ts'

let service: TestService
let user: TestUser
beforeAll(async () => {
  service = await startService({ worker: false, environment: FULL_MODE })
  user = await registerUser(service.url)
})
afterAll(() => service.stop())

const me = (authorization: string) =>
  call(service.url, 'GET', '/v1/auth/me', undefined, { Authorization: authorization })

const decode = (part: string | undefined) => JSON.parse(Buffer.from(part ?? '', 'base64url').toString())
const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
const own = () => {
  const [head, claims] = user.accessToken.split('.')
  return { head: decode(head), claims: decode(claims) }
}

/** Returns a token like the user's own with changes, signed with a key without any validation. */
function forge(changes: { head?: object; claims?: object }, key: string = JWT_SECRET, hash = 'sha256'): string {
  const { head, claims } = own()
  const signed = `${encode({ ...head, ...changes.head })}.${encode({ ...claims, ...changes.claims })}`
  return `${signed}.${createHmac(hash, key).update(signed).digest('base64url')}`
}

const now = () => Math.floor(Date.now() / 1000)
const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()

describe('an access token', () => {
  it('is accepted unchanged, so the forging code works', async () => {
    expect((await me(`Bearer ${forge({})}`)).status).toBe(200)
    expect((await me(`bearer   ${forge({})} `)).status).toBe(200)
    expect((await me(forge({}))).status).toBe(200)
  })

  it.each<[string, () => string | Promise<string>]>([
    ['signed with another key', () => forge({}, 'another secret, of the same length as ours')],
    ['signed with nothing', () => forge({ head: { alg: 'none' } }).replace(/[^.]*$/, '')],
    ['of alg none with a signature', () => forge({ head: { alg: 'none' } })],
    ['of alg None', () => forge({ head: { alg: 'None' } }).replace(/[^.]*$/, '')],
    ['of alg HS512', () => forge({ head: { alg: 'HS512' } }, JWT_SECRET, 'sha512')],
    ['that says RS256 and is an HMAC', () => forge({ head: { alg: 'RS256' } })],
    ['whose HMAC is by a public key', () => forge({}, pem)],
    [
      'signed by a key that it brings along',
      async () => {
        const { kty, n, e } = publicKey.export({ format: 'jwk' })
        const { claims } = own()
        return new SignJWT(claims)
          .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', jwk: { kty, n, e } })
          .sign(privateKey)
      },
    ],
    ['with a critical extension', () => forge({ head: { crit: ['x'], x: true } })],
    ['that has expired', () => forge({ claims: { exp: now() - 1 } })],
    ['that never expires', () => forge({ claims: { exp: undefined } })],
    ['that expires some day', () => forge({ claims: { exp: 'tomorrow' } })],
    ['that is not yet valid', () => forge({ claims: { nbf: now() + 60 } })],
    ['of another issuer', () => forge({ claims: { iss: 'somebody else' } })],
    ['of another type', () => forge({ head: { typ: 'JWT' } })],
    ['of no type', () => forge({ head: { typ: undefined } })],
    ['of another login', () => forge({ claims: { sid: randomUUID() } })],
    ['of a login that is not a UUID', () => forge({ claims: { sid: "' OR true --" } })],
    ['of a login that is a number', () => forge({ claims: { sid: 1 } })],
    ['of another user', async () => forge({ claims: { sub: await addUser(service.platform.deps.db) } })],
    ['of nobody', () => forge({ claims: { sub: undefined } })],
    ['of a user that is not a UUID', () => forge({ claims: { sub: '\u0000' } })],
    ['without its end', () => forge({}).slice(0, -5)],
    ['without its signature', () => forge({}).replace(/[^.]*$/, '')],
    ['with a part too many', () => `${forge({})}.x`],
    ['with a bit turned', () => forge({}).replace(/.$/, (last) => (last === 'A' ? 'Q' : 'A'))],
    ['that is a refresh token', () => user.refreshToken],
    [
      'whose claims are no JSON',
      () => {
        const signed = `${encode(own().head)}.${Buffer.from('{').toString('base64url')}`
        return `${signed}.${createHmac('sha256', JWT_SECRET).update(signed).digest('base64url')}`
      },
    ],
    ['of one letter', () => 'x'],
    ['of dots', () => '..'],
    ['an API key of nobody', () => `ask_${'0'.repeat(64)}`],
    ['an API key in capitals', () => `ASK_${'A'.repeat(64)}`],
    ['half an API key', () => `ask_${'0'.repeat(32)}`],
    ['of 10,000 characters', () => 'x'.repeat(10_000)],
  ])('is refused %s', async (_what, make) => {
    const token = await make()
    for (const scheme of ['Bearer ', 'ApiKey ', '']) {
      const answer = await me(scheme + token)
      expectError(answer, 401, /^Authentication required$/)
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    }
    const byCookie = await call(service.url, 'GET', '/v1/auth/me', undefined, { Cookie: `access_token=${token}` })
    expect(byCookie.status).toBe(401)
  })

  it('is refused in other schemes, and if sent twice', async () => {
    const { accessToken } = user
    const basic = Buffer.from(`${user.email}:${user.password}`).toString('base64')
    for (const value of [
      `Basic ${basic}`,
      `Token ${accessToken}`,
      `Bearer Bearer ${accessToken}`,
      'Bearer',
      'Bearer ',
    ]) {
      expectError(await me(value), 401, /^Authentication required$/)
    }
  })

  it('is answered with 431 and nothing else where the head is a megabyte', async () => {
    expectError(await me(`Bearer ${'x'.repeat(1024 * 1024)}`), 431, /too large/)
    expect((await me(`Bearer ${user.accessToken}`)).status).toBe(200)
  })
})

describe('a request that is refused before all of it is there', () => {
  it('has one answer, whatever follows', async () => {
    const begun = `${head('POST', '/v1/sessions', { 'Transfer-Encoding': 'chunked', Connection: 'keep-alive' })}5\r\n{"tit`
    const { hostname, port } = new URL(service.url)
    const socket = connect(Number(port), hostname, () => socket.write(begun))
    const received: string[] = []
    socket.setEncoding('utf8').on('error', () => {})
    const answered = new Promise<void>((resolve) => {
      socket.on('data', (chunk: string) => {
        received.push(chunk)
        resolve()
      })
    })
    const closed = new Promise<void>((resolve) => void socket.on('close', () => resolve()))
    await answered
    socket.write('no chunk at all\r\n\r\n')
    await closed
    expect(received.join('').match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401'])
  })
})

describe('a refresh token', () => {
  it.each<[string, () => string]>([
    ['is not an access token', () => user.accessToken],
    ['cannot be forged', () => forge({ head: { typ: 'refresh+jwt' } }, 'x'.repeat(40))],
    ['cannot be of the future', () => forge({ head: { typ: 'refresh+jwt' }, claims: { nbf: now() + 60 } })],
    ['ends', () => forge({ head: { typ: 'refresh+jwt' }, claims: { exp: now() - 1 } })],
  ])('%s, and a wrong token does not end the login', async (_what, make) => {
    expectError(await call(service.url, 'POST', '/v1/auth/refresh', { refresh_token: make() }), 401, /sign in again/)
    expect((await me(`Bearer ${user.accessToken}`)).status).toBe(200)
  })
})

describe('another secret', () => {
  it('invalidates all tokens', async () => {
    const { createTokens } = await import('../../domain/identity/auth/tokens.ts')
    const { auth } = service.platform.deps
    const { tokens } = auth
    auth.tokens = createTokens({ secret: Buffer.from('a new secret'), accessSeconds: 900, refreshSeconds: 900 })
    expect((await me(`Bearer ${user.accessToken}`)).status).toBe(401)
    auth.tokens = tokens
    expect((await me(`Bearer ${user.accessToken}`)).status).toBe(200)
  })
})
