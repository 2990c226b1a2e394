import { pino } from 'pino'
import { endpoints } from '../../contract/index.ts'
import {
  ADMIN_VARIABLES,
  addOwnOrganization,
  createApiKey,
  FULL_MODE,
  fromSomewhere,
  logInUser,
  registerUser,
} from '../support/auth.ts'
import { type Answer, call, expectError, type Json, textMessage } from '../support/http.ts'
import { createLogCheck, type LogCheck } from '../support/log-check.ts'
import {
  expectEachFieldFound,
  expectEachSecretSet,
  madeUpSecrets,
  secretFields,
  secretsOf,
} from '../support/secrets.ts'
import { startService, type TestService } from '../support/service.ts'

const TEXT = 'text-of-a-test: what nobody but the model is to read'

let service: TestService
let url: string
beforeAll(async () => {
  const environment = {
    ...madeUpSecrets(),
    ...FULL_MODE,
    ...ADMIN_VARIABLES,
    AUTH_IDPA_CLIENT_ID: 'client',
    AUTH_IDPB_CLIENT_ID: 'client',
    DEFAULT_OPENAI_API_KEY: 'sk-of-a-test-0123456789',
    DEFAULT_OPENAI_BASE_URL: 'http://127.0.0.1:1/v1',
  }
  service = await startService({ worker: false, environment })
  url = service.url
})
afterAll(() => service.stop())

/**
 * Runs `work` while a table is unusable. `check` rejects every row, and Postgres reports its content. `rename` removes
 * the table.
 */
async function breaking<T>(how: 'check' | 'rename', table: string, work: () => Promise<T>): Promise<T> {
  const { db } = service.platform.deps
  const [broken, mended] = {
    check: [`ADD CONSTRAINT broken CHECK (false) NOT VALID`, `DROP CONSTRAINT broken`],
    rename: [`RENAME TO broken`, `RENAME TO ${table}`],
  }[how]
  await db.$executeRawUnsafe(`ALTER TABLE ${table} ${broken}`)
  try {
    return await work()
  } finally {
    await db.$executeRawUnsafe(`ALTER TABLE ${how === 'rename' ? 'broken' : table} ${mended}`)
  }
}

type Request = () => Promise<Answer>

/** Returns a request for each statement that handles a secret, with the table that is broken for it. */
async function failingRequests(): Promise<[table: string, request: Request][]> {
  const user = await registerUser(url)
  const session = await call(url, 'POST', '/v1/sessions', {}, user.headers)
  const apiKey = (await createApiKey(url, user.headers)).key
  const own = await addOwnOrganization(url, user)
  const storage = `/v1/sessions/${session.body.id}/storage`
  const invitations = `/v1/orgs/${own.id}/invitations`
  const { token } = (await call(url, 'POST', invitations, { role: 'member' }, user.headers)).body
  const invited = await registerUser(url)
  const post = (path: string, body: Json, headers: Record<string, string> = {}) =>
    call(url, 'POST', path, body, { ...fromSomewhere(), ...headers })
  const { email, password, refreshToken, headers } = user
  const idempotent = { ...headers, 'Idempotency-Key': 'once' }
  const agent = { name: TEXT, system_prompt: TEXT }
  const keyed = { name: TEXT, provider_type: 'openai', api_key: 'sk-x' }
  const server = { name: TEXT, url: 'https://mcp.example/', api_key: 'sk-x', headers: { 'X-Key': `${TEXT}!` } }
  const kept = { ...server, name: 'Existing' }
  const input = { url: `https://hooks.example/${TEXT}`, headers: { 'X-Key': `${TEXT}!` }, body: TEXT }
  const target = { type: 'activity', name: 'http_request', input }
  const schedule = { name: TEXT, description: TEXT, cron_expression: '0 0 1 1 *', target }
  const plain = { ...schedule, name: 'Existing', target: { type: 'activity', name: 'noop' } }
  const secret = `whsec_${Buffer.from(TEXT.padEnd(32, '!')).toString('base64')}`
  const encryption_key = Buffer.alloc(32, TEXT).toString('base64')
  const webhook = { url: `https://hooks.example/${TEXT}`, events: ['turn.completed'], secret }
  const { id: scheduleId } = (await call(url, 'POST', '/v1/durable/schedules', plain, own.headers)).body
  const { id: serverId } = (await call(url, 'POST', '/v1/mcp-servers', kept, own.headers)).body
  return [
    ['users', () => post('/v1/auth/register', { email: `new-${email}`, password, name: 'New' })],
    ['members', () => post('/v1/auth/register', { email: `new-${email}`, password, name: 'New' })],
    ['refresh_tokens', () => post('/v1/auth/register', { email: `new-${email}`, password, name: 'New' })],
    ['refresh_tokens', () => post('/v1/auth/login', { email, password })],
    ['refresh_tokens', () => post('/v1/auth/refresh', { refresh_token: refreshToken })],
    ['api_keys', () => post('/v1/auth/api-keys', { name: 'Key' }, headers)],
    ['api_keys', () => call(url, 'GET', '/v1/agents', undefined, { Authorization: `ApiKey ${apiKey}` })],
    ['idempotency_keys', () => post('/v1/auth/api-keys', { name: 'Key' }, idempotent)],
    ['invitations', () => post(invitations, { role: 'member' }, headers)],
    ['idempotency_keys', () => post(invitations, { role: 'member' }, { ...headers, 'Idempotency-Key': 'invited' })],
    ['members', () => post('/v1/orgs/join', { token }, invited.headers)],
    ['llm_providers', () => post('/v1/llm-providers', keyed, own.headers)],
    ['idempotency_keys', () => post('/v1/llm-providers', keyed, { ...own.headers, 'Idempotency-Key': 'keyed' })],
    ['mcp_servers', () => post('/v1/mcp-servers', server, own.headers)],
    ['idempotency_keys', () => post('/v1/mcp-servers', server, { ...own.headers, 'Idempotency-Key': 'server' })],
    ['mcp_servers', () => call(url, 'PATCH', `/v1/mcp-servers/${serverId}`, server, own.headers)],
    [
      'organization_secrets',
      () => call(url, 'PUT', '/v1/secrets/A', { value: TEXT, hosts: ['a.example'] }, own.headers),
    ],
    ['schedules', () => post('/v1/durable/schedules', schedule, own.headers)],
    [
      'idempotency_keys',
      () => post('/v1/durable/schedules', schedule, { ...own.headers, 'Idempotency-Key': 'scheduled' }),
    ],
    ['schedules', () => call(url, 'PATCH', `/v1/durable/schedules/${scheduleId}`, schedule, own.headers)],
    ['task_queues', () => call(url, 'PUT', '/v1/task-queues/warehouse', { encryption_key }, own.headers)],
    ['webhooks', () => post('/v1/webhooks', webhook, own.headers)],
    ['idempotency_keys', () => post('/v1/webhooks', webhook, { ...own.headers, 'Idempotency-Key': 'told' })],
    ['agents', () => post('/v1/agents', agent, headers)],
    ['sessions', () => post('/v1/sessions', { title: TEXT }, headers)],
    ['session_values', () => call(url, 'PUT', `${storage}/keys/a`, { value: TEXT }, headers)],
    ['session_secrets', () => call(url, 'PUT', `${storage}/secrets/a`, { value: TEXT }, headers)],
    ['events', () => post(`/v1/sessions/${session.body.id}/messages`, textMessage(TEXT), headers)],
  ]
}

function findsSomething(check: LogCheck): boolean {
  try {
    check.expectNoSecrets()
    return false
  } catch {
    return true
  }
}

describe('the check of logs', () => {
  const lineWith = (secret: string) => {
    const check = createLogCheck(['hidden-in-the-configuration'])
    pino({}, check).error({ err: new Error(`It was "${secret}".`) }, 'failed')
    return () => check.expectNoSecrets()
  }

  it('accepts lines without secrets', () => {
    for (const plain of ['nothing', 'Bearer', 'ask-1', 'https://example.com/a:b@c', 'task-1', 'ask_0123'])
      expect(lineWith(plain)).not.toThrow()
  })

  it.each([
    ['an access token', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl'],
    ['the state of a sign-in', 'eyJhbGciOiJkaXIifQ..aXY.Y2lwaGVy.dGFn'],
    ['an API key', `ask_${'0a'.repeat(32)}`],
    ['an invitation', `inv_${'0a'.repeat(32)}`],
    ['a password', 'pw-of-a-test-1'],
    ["a password's hash", '$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA'],
    ['the secret of tokens', FULL_MODE.AUTH_JWT_SECRET ?? ''],
    ["an identity provider's secret", 'secret-of-a-test-1'],
    ['an address with a password', 'postgres://user:password@localhost/db'],
    ['a header', 'Bearer 0123456789abcdef'],
    ["a provider's key", 'sk-x'],
    ['a cookie', 'org_id=1; refresh_token=2'],
    ['a request', '{"email":"a@example.com","password":"short"}'],
    ['a message', TEXT],
    ['a secret of the configuration', 'hidden-in-the-configuration'],
  ])('finds %s', (_, secret) => {
    expect(lineWith(secret)).toThrow(/is in this line of the log/)
  })

  it('finds every secret of the configuration, and every request field named like one', () => {
    expectEachSecretSet(service.config, 'test/service/secret-logs.test.ts')
    for (const secret of secretsOf(service.config)) {
      const check = createLogCheck(secretsOf(service.config))
      check.write(JSON.stringify({ msg: `It was "${secret}".` }))
      expect(() => check.expectNoSecrets()).toThrow(/is in this line of the log/)
    }
    expectEachFieldFound(secretFields(endpoints), (line) => {
      const check = createLogCheck()
      check.write(line)
      return findsSomething(check)
    })
  })

  it('fails the stop of a service that has logged one, after everything has stopped', async () => {
    const leaky = await startService({ worker: false })
    leaky.platform.deps.log.debug({ token: `Bearer ${'x'.repeat(20)}` }, 'planted')
    leaky.platform.deps.log.child({ of: 'a child' }).debug('fine')
    await expect(leaky.stop()).rejects.toThrow(/a credential is in this line of the log.*planted/)
    await expect(fetch(leaky.url)).rejects.toThrow()
  })
})

describe('the log', () => {
  it('has no secret of successful or failed sign-ins', async () => {
    const user = await registerUser(url)
    const { email, password } = await logInUser(url, user)
    const post = (path: string, body: Json) => call(url, 'POST', path, body, fromSomewhere())
    expectError(await post('/v1/auth/login', { email, password: `${password}x` }), 401)
    expectError(await post('/v1/auth/register', { email, password, name: 'Again' }), 409)
    const renewed = await post('/v1/auth/refresh', { refresh_token: user.refreshToken })
    expect(renewed.status).toBe(200)
    expectError(await post('/v1/auth/refresh', { refresh_token: user.refreshToken }), 401)
    expectError(await post('/v1/auth/login', `{"email":"${email}","password":"${password}`), 400)
    expectError(
      await call(url, 'GET', '/v1/agents', undefined, { Authorization: `Basic ${btoa(`a:${password}`)}` }),
      401,
    )
    service.logCheck.expectNoSecrets()
  })

  it.each(['check', 'rename'] as const)('contains nothing of a request when Postgres fails: %s', async (how) => {
    const answers: Json[] = []
    for (const [table, request] of await failingRequests()) {
      const { status } = await breaking(how, table, request)
      answers.push(`${table} ${status}`)
    }
    expect(answers.filter((answer) => !answer.endsWith(' 500'))).toEqual([])
    service.logCheck.expectNoSecrets()
  })

  it('contains no arguments of an invalid query', async () => {
    const { db, log } = service.platform.deps
    const data = { id: TEXT, email: TEXT, passwordHash: '$argon2id$', name: 5 as never }
    const error = await db.user.create({ data }).catch((caught: Error) => caught)
    expect(error).toMatchObject({ name: 'PrismaClientValidationError', message: expect.stringContaining(TEXT) })
    log.error({ err: error }, 'failed')
    service.logCheck.expectNoSecrets()
  })
})
