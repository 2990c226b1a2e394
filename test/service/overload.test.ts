import pg from 'pg'
import { call, createSession, expectError, textMessage } from '../support/http.ts'
import { startService, type TestService } from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false, environment: { DATABASE_POOL_SIZE: '2' } })
})
afterAll(() => service.stop())

describe('a service whose connections to Postgres are all taken', () => {
  it('says so, and when to retry', async () => {
    const { url, platform } = service
    const id = await createSession(url)
    const locker = new pg.Client({ connectionString: service.config.DATABASE_URL })
    await locker.connect()
    await locker.query('SELECT pg_advisory_lock(1)')
    const taken = [1, 2].map(() => platform.deps.db.$queryRaw`SELECT pg_advisory_xact_lock(1)::text`.then(() => {}))
    const answers = await Promise.all([
      call(url, 'GET', `/v1/sessions/${id}`),
      call(url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Hello')),
      call(url, 'POST', `/v1/sessions/${id}/cancel`),
    ])
    for (const answer of answers) {
      expectError(answer, 503, 'too busy')
      expect(answer.headers.get('Retry-After')).toBe('2')
    }
    await locker.end()
    await Promise.all(taken)
    expect((await call(url, 'GET', `/v1/sessions/${id}/messages`)).body.data).toEqual([])
  })
})
