import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { ConfigError, readConfig } from '../../../platform/config.ts'
import { ADMIN_MODE, FULL_MODE, SECRETS_KEY } from '../../support/auth.ts'

const without = (environment: Record<string, string>, name: string) => ({ ...environment, [name]: '' })
const problems = (environment: Record<string, string>): string => {
  try {
    readConfig(environment)
    return ''
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
}

/** Keys that are refused. None of them is empty, because an empty variable counts as absent. */
const BAD_KEYS: [what: string, key: string][] = [
  ['of words', 'correct horse battery staple'],
  ['of 31 bytes', SECRETS_KEY.slice(2)],
  ['of 33 bytes', `${SECRETS_KEY}00`],
  ['with a letter that is not a digit', `${SECRETS_KEY.slice(1)}g`],
  ['of 31 bytes in base64', Buffer.alloc(31).toString('base64')],
  ['of 33 bytes in base64', Buffer.alloc(33).toString('base64')],
  ['with a cut end', Buffer.alloc(32).toString('base64').slice(0, 40)],
  ['with bits left over', `${'A'.repeat(42)}B=`],
]
const KEY_SENTENCE =
  /^SECRETS_ENCRYPTION_KEY: must be 32 bytes, as 64 hex digits or base64; openssl rand -hex 32 makes one$/

describe('a variable in a file', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'agent-sessions-config-'))
  const file = (name: string, text: string) => {
    writeFileSync(path.join(folder, name), text)
    return path.join(folder, name)
  }
  afterAll(() => rmSync(folder, { recursive: true }))

  it('has its value, without the last line break', () => {
    const config = readConfig({
      TEMPORAL_API_KEY_FILE: file('key', 'a key\n'),
      REDIS_PREFIX_FILE: file('prefix', 'mine'),
    })
    expect(config).toMatchObject({ TEMPORAL_API_KEY: 'a key', REDIS_PREFIX: 'mine' })
  })

  it('is refused in a sentence when it cannot be had', () => {
    const REDIS_PREFIX_FILE = file('prefix', 'mine')
    const both = 'REDIS_PREFIX_FILE: must not be given together with REDIS_PREFIX'
    expect(problems({ REDIS_PREFIX_FILE, REDIS_PREFIX: 'x' })).toBe(both)
    expect(problems({ REDIS_PREFIX_FILE: file('empty', '\n') })).toMatch(/^REDIS_PREFIX_FILE: .* is empty$/)
    expect(problems({ REDIS_PREFIX_FILE: folder })).toMatch(/^REDIS_PREFIX_FILE: .* cannot be read \(EISDIR\)$/)
    expect(problems({ PORT_FILE: file('port', 'many') })).toMatch(/^PORT: /)
  })
})

describe('the environment', () => {
  it('may be empty, which disables sign-in', () => {
    expect(readConfig({})).toMatchObject({
      AUTH_MODE: 'none',
      AUTH_BASE_URL: 'http://localhost:9300/api',
      AUTH_JWT_ACCESS_TOKEN_LIFETIME: 900,
      AUTH_JWT_REFRESH_TOKEN_LIFETIME: 2_592_000,
      AUTH_DISABLE_PASSWORD: false,
      AUTH_DISABLE_SIGNUP: false,
      TRUSTED_PROXIES: 0,
    })
  })

  it('without a host listens on this machine alone when nobody has to sign in', () => {
    const hostOf = (environment: Record<string, string>) => readConfig(environment).HOST
    expect(hostOf({})).toBe('127.0.0.1')
    expect([FULL_MODE, ADMIN_MODE].map(hostOf)).toEqual(['0.0.0.0', '0.0.0.0'])
    expect([{}, FULL_MODE].map((mode) => hostOf({ ...mode, HOST: '10.1.2.3' }))).toEqual(['10.1.2.3', '10.1.2.3'])
  })

  it.each([
    FULL_MODE,
    ADMIN_MODE,
    { ...FULL_MODE, AUTH_DISABLE_PASSWORD: 'true', AUTH_ADMIN_EMAIL: 'admin@example.com' },
  ])('may be %j', (environment) => {
    expect(problems(environment)).toBe('')
  })

  it.each<[string, Record<string, string>, RegExp]>([
    ['full without a secret', without(FULL_MODE, 'AUTH_JWT_SECRET'), /^AUTH_JWT_SECRET: is needed with AUTH_MODE=full/],
    [
      'admin without a secret',
      without(ADMIN_MODE, 'AUTH_JWT_SECRET'),
      /^AUTH_JWT_SECRET: is needed with AUTH_MODE=admin/,
    ],
    [
      'full without a key of secrets',
      without(FULL_MODE, 'SECRETS_ENCRYPTION_KEY'),
      /^SECRETS_ENCRYPTION_KEY: is needed with AUTH_MODE=full: .*openssl rand -hex 32 makes one$/,
    ],
    ...BAD_KEYS.flatMap(([what, key]): [string, Record<string, string>, RegExp][] => [
      [`a key of secrets ${what}`, { SECRETS_ENCRYPTION_KEY: key }, KEY_SENTENCE],
      [
        `a previous key of secrets ${what}`,
        { SECRETS_ENCRYPTION_KEY_PREVIOUS: `${SECRETS_KEY},${key}` },
        /^SECRETS_ENCRYPTION_KEY_PREVIOUS\.1: must be 32 bytes/,
      ],
    ]),
    [
      'more than ten previous keys',
      { SECRETS_ENCRYPTION_KEY_PREVIOUS: Array(11).fill(SECRETS_KEY).join() },
      /^SECRETS_ENCRYPTION_KEY_PREVIOUS: must be at most 10 keys$/,
    ],
    ['admin without e-mail', without(ADMIN_MODE, 'AUTH_ADMIN_EMAIL'), /^AUTH_ADMIN_EMAIL: is needed/],
    ['admin without password', without(ADMIN_MODE, 'AUTH_ADMIN_PASSWORD'), /^AUTH_ADMIN_PASSWORD: is needed/],
    ['half an administrator', { ...FULL_MODE, AUTH_ADMIN_EMAIL: 'a@example.com' }, /^AUTH_ADMIN_PASSWORD: is needed/],
    ['an administrator of no e-mail', { ...ADMIN_MODE, AUTH_ADMIN_EMAIL: 'admin' }, /^AUTH_ADMIN_EMAIL: /],
    ['an unknown mode', { AUTH_MODE: 'open' }, /^AUTH_MODE: /],
    ['a client without a secret', { ...FULL_MODE, AUTH_IDPA_CLIENT_ID: 'x' }, /^AUTH_IDPA_CLIENT_SECRET: is needed/],
    ['a secret without a client', { ...FULL_MODE, AUTH_IDPB_CLIENT_SECRET: 'x' }, /^AUTH_IDPB_CLIENT_ID: is needed/],
    [
      'a provider in the clear',
      { AUTH_IDPA_ISSUER: 'http://login.example.com' },
      /^AUTH_IDPA_ISSUER: must begin with https/,
    ],
    ['a provider of another protocol', { AUTH_IDPB_TOKEN_URL: 'file:///etc/passwd' }, /^AUTH_IDPB_TOKEN_URL: /],
    ['a malformed base address', { AUTH_BASE_URL: 'localhost' }, /^AUTH_BASE_URL: /],
    ['no domain where some are meant', { AUTH_IDPA_ALLOWED_DOMAINS: ' , ' }, /^AUTH_IDPA_ALLOWED_DOMAINS: /],
    ['a malformed domain', { AUTH_IDPA_ALLOWED_DOMAINS: 'a.example,https://b' }, /^AUTH_IDPA_ALLOWED_DOMAINS/],
    ['a redirect elsewhere', { AUTH_IDPA_REDIRECT_URI: 'javascript:alert(1)' }, /^AUTH_IDPA_REDIRECT_URI: /],
    ['a base address with a query', { AUTH_BASE_URL: 'https://a.example/?b' }, /^AUTH_BASE_URL: must have no query/],
    ['a base address with a user', { AUTH_BASE_URL: 'https://a:b@a.example' }, /^AUTH_BASE_URL: must have no query/],
    [
      'the address of a description for an issuer',
      { AUTH_IDPA_ISSUER: 'https://a.example/.well-known/openid-configuration' },
      /^AUTH_IDPA_ISSUER: must be the issuer itself/,
    ],
    ['a malformed private host', { ALLOWED_PRIVATE_HOSTS: 'ollama:11434, http://b' }, /, not http:\/\/b$/],
    ['a timer of years', { SSE_REALTIME_CYCLE_SECS: '3000000' }, /^SSE_REALTIME_CYCLE_SECS: /],
    [
      'a password that no login takes',
      { ...ADMIN_MODE, AUTH_ADMIN_PASSWORD: 'x'.repeat(1025) },
      /^AUTH_ADMIN_PASSWORD: /,
    ],
    ['no lifetime', { AUTH_JWT_ACCESS_TOKEN_LIFETIME: '0' }, /^AUTH_JWT_ACCESS_TOKEN_LIFETIME: /],
    ['a lifetime of words', { AUTH_JWT_REFRESH_TOKEN_LIFETIME: 'long' }, /^AUTH_JWT_REFRESH_TOKEN_LIFETIME: /],
    ['a malformed flag', { AUTH_DISABLE_SIGNUP: 'yes' }, /^AUTH_DISABLE_SIGNUP: /],
  ])('is refused with %s', (_what, environment, sentence) => {
    expect(problems(environment)).toMatch(sentence)
  })

  it('quotes no part of a key that it refuses', () => {
    for (const [, key] of BAD_KEYS) expect(problems({ SECRETS_ENCRYPTION_KEY: key })).not.toContain(key)
  })

  it('needs no key of secrets without users, and takes it in two forms', () => {
    expect(problems(without(ADMIN_MODE, 'SECRETS_ENCRYPTION_KEY'))).toBe('')
    expect(readConfig({}).SECRETS_ENCRYPTION_KEY_PREVIOUS).toEqual([])
    const previous = [SECRETS_KEY, Buffer.from(SECRETS_KEY, 'hex').toString('base64')]
    const environment = { SECRETS_ENCRYPTION_KEY: previous[1], SECRETS_ENCRYPTION_KEY_PREVIOUS: previous.join(' , ') }
    expect(readConfig(environment)).toMatchObject({ SECRETS_ENCRYPTION_KEY_PREVIOUS: previous })
  })

  it('is refused with everything that is missing at once', () => {
    expect(
      problems({ AUTH_MODE: 'admin' })
        .split('\n')
        .map((line) => line.split(':')[0]),
    ).toEqual(['AUTH_JWT_SECRET', 'AUTH_ADMIN_EMAIL', 'AUTH_ADMIN_PASSWORD'])
  })

  it('accepts a local provider over HTTP, and URLs with a trailing slash', () => {
    for (const host of ['localhost', '127.0.0.1', '[::1]']) {
      expect(problems({ AUTH_IDPA_ISSUER: `http://${host}:9305` })).toBe('')
    }
    expect(readConfig({ AUTH_BASE_URL: 'https://example.com/api/' }).AUTH_BASE_URL).toBe('https://example.com/api')
    expect(readConfig({ AUTH_IDPA_ALLOWED_DOMAINS: 'a.example, @B.example,' }).AUTH_IDPA_ALLOWED_DOMAINS).toEqual([
      'a.example',
      'b.example',
    ])
  })

  it('fails the start of a process with the reason, but without the secret', () => {
    const environment = { ...process.env, ...without(ADMIN_MODE, 'AUTH_ADMIN_EMAIL') }
    const flags = ['--disable-warning=ExperimentalWarning', 'main.ts']
    const { status, stderr } = spawnSync(process.execPath, flags, { env: environment, encoding: 'utf8' })
    expect(status).toBe(1)
    expect(stderr).toMatch(/cannot start with this environment:\nAUTH_ADMIN_EMAIL: is needed for the administrator/)
    expect(stderr).not.toContain(ADMIN_MODE.AUTH_JWT_SECRET)
  })
})
