import { addOwnOrganization, createApiKey, FULL_MODE, registerUser } from '../support/auth.ts'
import { type Answer, call, expectError, waitFor } from '../support/http.ts'
import { startService, type TestService } from '../support/service.ts'

const PER_KEY = 4
/** The two requests that make keys, and all that both keys may send. */
const PER_ORGANIZATION = 2 + 2 * PER_KEY

let service: TestService
let peer: Awaited<ReturnType<TestService['startPeer']>>
beforeAll(async () => {
  const environment = {
    ...FULL_MODE,
    RATE_LIMIT_PER_KEY_PER_MINUTE: `${PER_KEY}`,
    RATE_LIMIT_PER_ORGANIZATION_PER_MINUTE: `${PER_ORGANIZATION}`,
  }
  service = await startService({ worker: false, environment })
  peer = await service.startPeer()
  for (const { platform } of [service, peer])
    await waitFor(async () => platform.deps.redis.client.status === 'ready', 'Redis')
})
afterAll(() => service.stop())

/** Creates an organization with two keys. */
async function createOwner() {
  const user = await registerUser(service.url)
  const { headers } = await addOwnOrganization(service.url, user)
  const keys = [await createApiKey(service.url, headers), await createApiKey(service.url, headers)]
  const [one, other] = keys.map(({ key }) => ({ Authorization: `Bearer ${key}` }))
  if (one === undefined || other === undefined) throw new Error('There are two keys.')
  return { headers, one, other, used: 2 }
}

const ask = (headers: Record<string, string>, n: number): Promise<Answer> =>
  call(n % 2 === 0 ? service.url : peer.url, 'GET', '/v1/sessions', undefined, headers)
const countOf = (answers: Answer[], status: number) => answers.filter((answer) => answer.status === status).length
const many = (headers: Record<string, string>, count: number) =>
  Promise.all(Array.from({ length: count }, (_, n) => ask(headers, n)))

it('requests are limited by key and by organization, over all processes, and their answers say so', async () => {
  const { headers, one, other, used } = await createOwner()
  const first = await ask(one, 0)
  expect(first.headers.get('ratelimit-policy')).toBe(
    `"api_key";q=${PER_KEY};w=60, "organization";q=${PER_ORGANIZATION};w=60`,
  )
  expect(first.headers.get('ratelimit')).toMatch(
    new RegExp(`^"api_key";r=${PER_KEY - 1};t=\\d+, "organization";r=${PER_ORGANIZATION - used - 1};t=\\d+$`),
  )
  const answers = await many(one, PER_KEY + 4)
  expect([countOf(answers, 200), countOf(answers, 429)]).toEqual([PER_KEY - 1, 5])
  for (const refused of answers.filter(({ status }) => status === 429)) {
    expectError(refused, 429, /^Too many requests with this API key; try again in \d+ s$/)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(refused.headers.get('ratelimit-policy')).toBe(`"api_key";q=${PER_KEY};w=60`)
  }
  // What was refused has taken nothing from the organization.
  expect(countOf(await many(other, PER_KEY), 200)).toBe(PER_KEY)
  const full = await ask(headers, 1)
  expectError(full, 429, /^Too many requests in this organization; try again in \d+ s$/)
  expect(full.headers.get('ratelimit-policy')).toBe(`"organization";q=${PER_ORGANIZATION};w=60`)
  // Another organization has its own limit.
  expect((await ask((await createOwner()).headers, 0)).status).toBe(200)
})

it('a request beyond a limit is refused before its body is read, and in the form of its face', async () => {
  const { headers, one } = await createOwner()
  await many(headers, PER_ORGANIZATION)
  const bad = await call(service.url, 'POST', '/v1/sessions', '[[[', { ...headers, 'Content-Type': 'application/json' })
  expectError(bad, 429)
  const openai = await call(service.url, 'POST', '/v1/chat/completions', {}, one)
  expect(openai).toMatchObject({ status: 429, body: { error: { type: 'rate_limit_error' } } })
  const mcp = await call(service.url, 'POST', '/v1/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }, one)
  expect(mcp).toMatchObject({
    status: 429,
    body: { jsonrpc: '2.0', error: { message: expect.stringMatching(/^Too many requests/) } },
  })
})

it('requests without a valid credential count for nobody, and a stream counts once', async () => {
  const { headers, one, used } = await createOwner()
  const wrong = await ask({ ...one, Authorization: `Bearer ask_${'0'.repeat(64)}` }, 0)
  expect([wrong.status, wrong.headers.get('ratelimit')]).toEqual([401, null])
  const { id } = (await call(service.url, 'POST', '/v1/sessions', {}, headers)).body
  const stop = new AbortController()
  const stream = await fetch(`${service.url}/v1/sessions/${id}/sse`, { headers: one, signal: stop.signal })
  expect(stream.headers.get('ratelimit')).toMatch(new RegExp(`^"api_key";r=${PER_KEY - 1};`))
  stop.abort()
  expect((await ask(one, 0)).headers.get('ratelimit')).toMatch(
    new RegExp(`^"api_key";r=${PER_KEY - 2};t=\\d+, "organization";r=${PER_ORGANIZATION - used - 3};`),
  )
})
