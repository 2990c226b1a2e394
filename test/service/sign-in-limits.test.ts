import { FULL_MODE, fromSomewhere } from '../support/auth.ts'
import { type Answer, call, expectError, waitFor } from '../support/http.ts'
import { startRedisSite } from '../support/redis-site.ts'
import { startService, type TestService, withService } from '../support/service.ts'

/** Waits for Redis, until which each process counts on its own. */
const waitForRedis = ({ platform }: Pick<TestService, 'platform'>): Promise<boolean> =>
  waitFor(async () => platform.deps.redis.client.status === 'ready', 'Redis')

let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false, environment: FULL_MODE })
  await waitForRedis(service)
})
afterAll(() => service.stop())

const WRONG = { email: 'nobody@example.com', password: 'not the password' }
const BODIES: Record<string, object> = {
  login: WRONG,
  register: { ...WRONG, name: 'X' },
  refresh: { refresh_token: 'x' },
}
const attempt = (url: string, what: string, headers: Record<string, string>) =>
  call(url, 'POST', `/v1/auth/${what}`, BODIES[what], headers)
const refused = (answers: Answer[]) => answers.filter(({ status }) => status === 429)

describe('one address', () => {
  it.each([
    ['login', 10],
    ['register', 5],
    ['refresh', 30],
  ])('may try to %s a limited number of times a minute, over all processes', async (what, limit) => {
    const peer = await service.startPeer()
    await waitForRedis(peer)
    const headers = fromSomewhere()
    const urls = Array.from({ length: limit + 4 }, (_, n) => (n % 2 === 0 ? service.url : peer.url))
    const answers = await Promise.all(urls.map((url) => attempt(url, what, headers)))
    expect(refused(answers)).toHaveLength(4)
    for (const answer of refused(answers)) {
      expectError(answer, 429, /^Too many attempts from this address; try again in \d+ s$/)
      const seconds = Number(answer.headers.get('retry-after'))
      expect(seconds).toBeGreaterThan(0)
      expect(seconds).toBeLessThanOrEqual(60)
      expect(answer.headers.get('ratelimit-policy')).toBe(`"address";q=${limit};w=60`)
      expect(answer.headers.get('ratelimit')).toBe(`"address";r=0;t=${seconds}`)
    }
    const left = answers.filter(({ status }) => status !== 429).map(({ headers }) => headers)
    for (const counted of left) {
      expect(counted.get('ratelimit-policy')).toBe(`"address";q=${limit};w=60, "network";q=${limit * 10};w=60`)
      expect(counted.get('ratelimit')).toMatch(/^"address";r=\d+;t=\d+, "network";r=\d+;t=\d+$/)
    }
    const remaining = left.map((counted) => Number(/^"address";r=(\d+)/.exec(counted.get('ratelimit') ?? '')?.[1]))
    expect(remaining.sort((a, b) => a - b)).toEqual(Array.from({ length: limit }, (_, index) => index))
    expect((await attempt(service.url, what, fromSomewhere())).status).not.toBe(429)
  })

  it.each([
    ['login', 10],
    ['register', 5],
    ['refresh', 30],
  ])('is refused before the body of its %s is read, and malformed bodies count', async (what, limit) => {
    const headers = { ...fromSomewhere(), 'Content-Type': 'application/json' }
    const statuses: number[] = []
    for (let sent = 0; sent < limit + 2; sent++) {
      statuses.push((await call(service.url, 'POST', `/v1/auth/${what}`, '[[[', headers)).status)
    }
    expect(statuses).toEqual([...Array(limit).fill(400), 429, 429])
  })

  it('comes from the trusted proxy, and a caller cannot forge it', async () => {
    const { 'X-Forwarded-For': address } = fromSomewhere()
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        attempt(service.url, 'login', { 'X-Forwarded-For': `10.250.0.${n}, ${address}` }),
      ),
    )
    expect(refused(answers)).toHaveLength(2)
  })

  it("is the connection's if no proxy is trusted", async () => {
    await withService({ worker: false, environment: { ...FULL_MODE, TRUSTED_PROXIES: '0' } }, async (unproxied) => {
      await waitForRedis(unproxied)
      const attempts = Array.from({ length: 12 }, () => attempt(unproxied.url, 'login', fromSomewhere()))
      const answers = await Promise.all(attempts)
      expect(refused(answers)).toHaveLength(2)
    })
  })

  it('is a network in IPv6, and the same in both notations of IPv4', async () => {
    const network = `2001:db8:${Math.floor(Math.random() * 0xffff).toString(16)}:1`
    const ofNetwork = Array.from({ length: 12 }, (_, n) => ({ 'X-Forwarded-For': `${network}::${n + 1}` }))
    expect(refused(await Promise.all(ofNetwork.map((each) => attempt(service.url, 'login', each))))).toHaveLength(2)
    const { 'X-Forwarded-For': address } = fromSomewhere()
    const written = Array.from({ length: 12 }, (_, n) => ({
      'X-Forwarded-For': n % 2 ? (address ?? '') : `::ffff:${address}`,
    }))
    expect(refused(await Promise.all(written.map((each) => attempt(service.url, 'login', each))))).toHaveLength(2)
  })

  it('does not depend on the port', async () => {
    const { 'X-Forwarded-For': address = '' } = fromSomewhere()
    const written = Array.from({ length: 12 }, (_, n) => ({ 'X-Forwarded-For': `${address}:${4000 + n}` }))
    expect(refused(await Promise.all(written.map((each) => attempt(service.url, 'login', each))))).toHaveLength(2)
    const six = `2001:db8:${Math.floor(Math.random() * 0xffff).toString(16)}:2::1`
    const ofSix = Array.from({ length: 12 }, (_, n) => ({ 'X-Forwarded-For': `[${six}]:${4000 + n}` }))
    expect(refused(await Promise.all(ofSix.map((each) => attempt(service.url, 'login', each))))).toHaveLength(2)
  })

  it("is the connection's if the proxy sends none", async () => {
    const written = Array.from({ length: 12 }, (_, n) => ({ 'X-Forwarded-For': `unknown-${n}` }))
    const answers = await Promise.all(written.map((each) => attempt(service.url, 'refresh', each)))
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(401))
    const more = await Promise.all(
      Array.from({ length: 20 }, () => attempt(service.url, 'refresh', { 'X-Forwarded-For': '127.0.0.1' })),
    )
    expect(refused(more)).toHaveLength(2)
  })

  it('shares ten times the limit with its whole network', async () => {
    const net = `2001:db8:${Math.floor(Math.random() * 0xffff).toString(16)}`
    const ofNet = Array.from({ length: 53 }, (_, n) => ({ 'X-Forwarded-For': `${net}:${n.toString(16)}::1` }))
    expect(refused(await Promise.all(ofNet.map((each) => attempt(service.url, 'register', each))))).toHaveLength(3)
  })

  it('is counted by each process separately while Redis is away', async () => {
    const site = await startRedisSite({ worker: false, environment: FULL_MODE })
    try {
      await site.stopRedis()
      const headers = fromSomewhere()
      const answers = await Promise.all(Array.from({ length: 14 }, () => attempt(site.service.url, 'login', headers)))
      expect(refused(answers)).toHaveLength(4)
      expect(answers.filter(({ status }) => status === 401)).toHaveLength(10)
    } finally {
      await site.close()
    }
  })
})
