import { once } from 'node:events'
import { connect } from 'node:net'
import { call, createSession, expectError, type Json, unknownId, waitFor } from '../support/http.ts'
import { exchange, head } from '../support/raw.ts'
import { startService, type TestService } from '../support/service.ts'

let service: TestService
let session: string
beforeAll(async () => {
  service = await startService({ worker: false })
  session = await createSession(service.url)
})
afterAll(() => service.stop())

const raw = (method: string, path: string, headers: Record<string, string> = {}) =>
  exchange(service.url, head(method, path, headers))

describe('an unknown route', () => {
  it.each([
    '/v1',
    '/v1/none',
    '/v2/agents',
    '/v1/agents/a/b/c',
    '/api',
    '/api/api/health',
    '/health/none',
    '/v1//agents',
  ])('answers 404: %s', async (path) => {
    expectError(await call(service.url, 'GET', path), 404, 'There is no route GET /')
  })
})

describe('a wrong method', () => {
  it.each([
    ['DELETE', '/v1/agents', ['GET', 'HEAD', 'POST']],
    ['PUT', '/v1/sessions', ['GET', 'HEAD', 'POST']],
    ['POST', `/v1/agents/${unknownId('agent')}`, ['DELETE', 'GET', 'HEAD', 'PATCH', 'PUT']],
    ['POST', '/health', ['GET', 'HEAD']],
    ['PROPFIND', '/v1/llm-models', ['GET', 'HEAD']],
    ['GET', '/v1/agents/import', ['POST', 'OPTIONS']],
    ['DELETE', '/v1/agents/preview', ['POST', 'OPTIONS']],
  ])('answers 405 and names the right ones: %s %s', async (method, path, allowed) => {
    const answer = await call(service.url, method, path)
    expectError(answer, 405, `${method} is not allowed here`)
    expect(answer.headers.get('allow')?.split(', ').sort()).toEqual([...new Set([...allowed, 'OPTIONS'])].sort())
  })
})

describe('HEAD and OPTIONS', () => {
  it.each(['/health', '/v1/agents', '/v1/sessions', '/openapi.json', '/docs'])(
    'HEAD %s is GET without the body',
    async (path) => {
      const got = await raw('GET', path)
      const headed = await raw('HEAD', path)
      expect([headed.status, headed.body]).toEqual([200, ''])
      expect(headed.headers['content-type']).toBe(got.headers['content-type'])
      expect(headed.headers['content-length']).toBe(got.headers['content-length'])
    },
  )

  it('HEAD of a list of events and of a stream ends at once', async () => {
    for (const path of ['events', 'sse']) {
      expect(await raw('HEAD', `/v1/sessions/${session}/${path}`)).toMatchObject({ status: 200, body: '' })
    }
    expect(service.api.openStreams()).toBe(0)
  })

  it('HEAD of what is not there answers 404', async () => {
    expect(await raw('HEAD', `/v1/agents/${unknownId('agent')}`)).toMatchObject({ status: 404, body: '' })
  })

  it('OPTIONS says what is allowed', async () => {
    const answer = await raw('OPTIONS', '/v1/agents')
    expect([answer.status, answer.body]).toEqual([204, ''])
    expect(answer.headers.allow?.split(', ').sort()).toEqual(['GET', 'HEAD', 'OPTIONS', 'POST'])
    expect((await raw('OPTIONS', '/v1/none')).status).toBe(404)
  })
})

describe('an unusual path or query', () => {
  it.each([
    '/v1/agents/%',
    '/v1/agents/%zz',
    '/v1/agents/%ff',
    '/v1/agents/%00',
    '/v1/sessions/%E0%A4%A/messages',
    '/v1/llm-models/a%2Fb',
  ])('is refused as a client error: %s', async (path) => {
    const { status, body } = await raw('GET', path)
    expect([status, JSON.parse(body)]).toEqual([
      400,
      expect.objectContaining({ error: expect.stringMatching(/id: must be/) }),
    ])
  })

  it('may be as long as a header may be', async () => {
    expectError(await call(service.url, 'GET', `/v1/${'x'.repeat(8000)}`), 404)
  })

  it.each(['?__proto__=1', '?constructor=x', '?unknown=1&unknown=2', '?%', '?%zz=%ff', '?&&==', '?search[]=a'])(
    'is ignored where nobody asks for it: %s',
    async (query) => {
      expect((await raw('GET', `/v1/agents${query}`)).status).toBe(200)
    },
  )

  const chunked = { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' }

  it.each<[string, number, string[]]>([
    ['not HTTP', 400, ['NONSENSE\r\n\r\n']],
    ['a head too large', 431, [head('GET', `/${'x'.repeat(20_000)}`)]],
    ['a length in words', 400, [head('POST', '/v1/agents', { 'Content-Length': 'many' })]],
    ['two lengths', 400, [head('POST', '/v1/agents', { ...chunked, 'Content-Length': '3' })]],
    ['a method that does not exist', 400, [head('NONSENSE', '/health')]],
    ['a method in lower case', 400, [head('get', '/health')]],
    ['HTTP/2', 400, ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n']],
    ['no Host', 400, ['GET /health HTTP/1.1\r\nConnection: close\r\n\r\n']],
    ['an expectation', 417, [head('POST', '/v1/sessions', { Expect: 'nonsense', 'Content-Length': '0' })]],
    ['CONNECT', 405, ['CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n']],
    ['a broken chunk', 400, [head('POST', '/v1/sessions', chunked), 'zz\r\n']],
    ['a broken chunk after a good one', 400, [head('POST', '/v1/sessions', chunked), '2\r\n{}\r\n', 'zz\r\n']],
    ['a scheme alone', 400, [head('GET', 'http://')]],
    ['half an address', 400, [head('GET', 'http://[')]],
    ['an address with a broken port', 400, [head('GET', 'http://localhost:port/health')]],
    ['a whole address of nothing', 404, [head('GET', 'http://localhost/none')]],
  ])('is answered in JSON: %s', async (_, status, parts) => {
    const answer = await exchange(service.url, ...parts)
    expect(answer).toMatchObject({ status, headers: { 'content-type': 'application/json; charset=utf-8' } })
    expect(JSON.parse(answer.body)).toEqual({ error: expect.any(String), code: expect.any(String) })
  })

  it('that is whole is answered although garbage follows', async () => {
    const whole = head('POST', '/v1/sessions', {
      'Content-Type': 'application/json',
      'Content-Length': '2',
      Connection: 'keep-alive',
    })
    const answer = await exchange(service.url, `${whole}{}NONSENSE\r\n\r\n`, 'more nonsense\r\n\r\n')
    expect(answer).toMatchObject({ status: 201, headers: { connection: 'close' } })
    expect(JSON.parse(answer.body)).toMatchObject({ status: 'started' })
  })

  it('of CONNECT may break off', async () => {
    const { hostname, port } = new URL(service.url)
    for (let count = 0; count < 5; count++) {
      const socket = connect(Number(port), hostname, () => {
        socket.write(`CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n${'x'.repeat(100_000)}`)
        socket.resetAndDestroy()
      })
      await once(socket, 'close')
    }
    expect((await raw('GET', '/health')).status).toBe(200)
  })

  it('may be a whole address', async () => {
    const { body } = await raw('GET', 'http://localhost/health?x=1')
    expect(JSON.parse(body)).toMatchObject({ status: 'ok' })
  })
})

describe('X-Request-Id', () => {
  it('is echoed', async () => {
    const { headers } = await call(service.url, 'GET', '/health', undefined, { 'X-Request-Id': 'abc-1/2' })
    expect(headers.get('x-request-id')).toBe('abc-1/2')
  })

  it('is generated if it is missing or unsuitable for a log', async () => {
    const made: (string | null)[] = []
    for (const given of [undefined, '', 'two words', 'x'.repeat(129), 'ä']) {
      const { headers } = await call(service.url, 'GET', '/health', undefined, given ? { 'X-Request-Id': given } : {})
      made.push(headers.get('x-request-id'))
    }
    for (const id of made) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4/)
    expect(new Set(made).size).toBe(made.length)
  })

  it('is on errors, too', async () => {
    for (const path of ['/none', '/v1/agents/x']) {
      expect((await call(service.url, 'GET', path)).headers.get('x-request-id')).toMatch(/./)
    }
  })
})

describe('an unexpected error', () => {
  it('is 500 without its cause', async () => {
    const { body } = await call(service.url, 'POST', '/v1/agents', { name: 'An agent', system_prompt: '' })
    const { db } = service.platform.deps
    await db.$executeRaw`ALTER TABLE agents RENAME TO agents_that_are_gone`
    const answer = await call(service.url, 'GET', `/v1/agents/${body.id}`)
    await db.$executeRaw`ALTER TABLE agents_that_are_gone RENAME TO agents`
    expectError(answer, 500, /^Internal server error$/)
    expect(answer.headers.get('x-request-id')).toMatch(/./)
  })
})

describe('the leading /api', () => {
  it('is ignored', async () => {
    expect((await call(service.url, 'GET', '/api/health')).status).toBe(200)
    expect((await call(service.url, 'GET', `/api/v1/sessions/${session}`)).body.id).toBe(session)
    expect((await call(service.url, 'POST', '/api/v1/sessions', {})).status).toBe(201)
  })
})

describe('health', () => {
  it('says version and mode', async () => {
    const { status, body } = await call(service.url, 'GET', '/health')
    expect([status, body]).toEqual([200, { status: 'ok', version: 'test', auth_mode: 'none' }])
  })

  it('says that all parts answer', async () => {
    const { status, body } = await call(service.url, 'GET', '/health/ready')
    const parts: Json = { postgres: 'ok', redis: 'ok', temporal: 'ok' }
    expect([status, body]).toEqual([200, { status: 'ready', parts }])
  })

  it('says that it has started', async () => {
    const { status, body } = await call(service.url, 'GET', '/health/started')
    expect([status, body]).toEqual([200, { status: 'started' }])
  })

  it('is degraded without Redis or Temporal, as messages are accepted all the same', async () => {
    const away: [Json, Json][] = [
      [{ REDIS_URL: 'redis://127.0.0.1:1' }, { postgres: 'ok', redis: 'no answer', temporal: 'ok' }],
      [{ TEMPORAL_ADDRESS: '127.0.0.1:1' }, { postgres: 'ok', redis: 'ok', temporal: 'no answer' }],
    ]
    for (const [environment, parts] of away) {
      const lonely = await startService({ worker: false, environment })
      // Redis is connected a moment after the start.
      const ask = () => call(lonely.url, 'GET', '/health/ready')
      await waitFor(async () => (await ask()).body.parts.redis === parts.redis, 'the state of Redis')
      const { status, body } = await ask()
      await lonely.stop()
      expect([status, body]).toEqual([200, { status: 'degraded', parts }])
    }
  })
})
