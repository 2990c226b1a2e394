import { call, createSession } from '../support/http.ts'
import { exchange, head } from '../support/raw.ts'
import { type TestService, withService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'

const withVariables = (environment: Record<string, string>, check: (service: TestService) => Promise<void>) =>
  withService({ worker: false, environment }, check)

const APP = 'https://app.example.com'
const statusOf = async (url: string, path: string) => (await call(url, 'GET', path)).status

describe('API_PREFIX', () => {
  it('moves /v1 and nothing else', async () => {
    await withVariables({ API_PREFIX: '/service/one/' }, async ({ url }) => {
      expect(await statusOf(url, '/service/one/v1/agents')).toBe(200)
      expect(await statusOf(url, '/api/service/one/v1/agents')).toBe(200)
      expect(await statusOf(url, '/v1/agents')).toBe(404)
      expect(await statusOf(url, '/health')).toBe(200)
      expect(await statusOf(url, '/service/one/health')).toBe(404)
      const { body } = await call(url, 'GET', '/openapi.json')
      expect(Object.keys(body.paths)).toEqual(expect.arrayContaining(['/service/one/v1/agents', '/health']))
      expect(body.paths).not.toHaveProperty('/v1/agents')
    })
  })

  it('may be /api', async () => {
    await withVariables({ API_PREFIX: '/api' }, async ({ url }) => {
      expect(await statusOf(url, '/api/v1/agents')).toBe(200)
      expect(await statusOf(url, '/api/api/v1/agents')).toBe(200)
      expect(await statusOf(url, '/v1/agents')).toBe(404)
      expect(await statusOf(url, '/api/health')).toBe(200)
    })
  })
})

describe('CORS', () => {
  const preflight = {
    Origin: APP,
    'Access-Control-Request-Method': 'POST',
    'Access-Control-Request-Headers': 'x-org-id',
  }
  const corsHeaders = (headers: Headers) => [...headers.keys()].filter((name) => name.startsWith('access-control'))

  it('is off unless it is configured', async () => {
    await withVariables({}, async ({ url }) => {
      for (const method of ['GET', 'OPTIONS']) {
        expect(corsHeaders((await call(url, method, '/v1/agents', undefined, preflight)).headers)).toEqual([])
      }
    })
  })

  it('is there for the origins that are listed, on answers, errors, preflights and streams', async () => {
    await withVariables({ CORS_ALLOWED_ORIGINS: `https://other.example.com, ${APP}` }, async ({ url }) => {
      for (const path of ['/v1/agents', '/v1/agents/x', '/none']) {
        const { headers } = await call(url, 'GET', path, undefined, { Origin: APP })
        expect(headers.get('access-control-allow-origin')).toBe(APP)
        expect(headers.get('vary')).toMatch(/origin/i)
        expect(headers.get('access-control-expose-headers')?.split(',')).toEqual(
          expect.arrayContaining([
            'X-Request-Id',
            'Retry-After',
            'RateLimit-Policy',
            'RateLimit',
            'Content-Disposition',
            'ETag',
          ]),
        )
      }
      const { status, headers } = await call(url, 'OPTIONS', '/v1/agents', undefined, preflight)
      expect([status, headers.get('access-control-allow-origin')]).toEqual([204, APP])
      expect(headers.get('access-control-max-age')).toBe('600')
      expect(headers.get('access-control-allow-methods')).toMatch(/POST/)
      expect(headers.get('access-control-allow-methods')).toMatch(/PATCH/)
      expect(headers.get('access-control-allow-headers')).toBe('x-org-id')
      const path = `/v1/sessions/${await createSession(url)}/sse`
      const stream = await openStream(url, path, { headers: { Origin: APP } })
      stream.close()
      expect(stream.headers['access-control-allow-origin']).toBe(APP)
    })
  })

  it('decides which pages may write where nobody signs in', async () => {
    await withVariables({ CORS_ALLOWED_ORIGINS: APP }, async ({ url }) => {
      const post = async (headers: Record<string, string>) =>
        (await call(url, 'POST', '/v1/sessions', {}, headers)).status
      const { hostname } = new URL(url)
      const own: Record<string, string>[] = [
        { Origin: APP, 'Sec-Fetch-Site': 'cross-site' },
        { Origin: url, 'Sec-Fetch-Site': 'same-origin' },
        { Origin: `http://${hostname}:3000` },
        { 'Sec-Fetch-Site': 'none' },
      ]
      const foreign: Record<string, string>[] = [
        { Origin: 'https://evil.example.com' },
        { Origin: `http://${hostname}.evil.example.com` },
        { Origin: 'null' },
        { Origin: 'https://evil.example.com', 'Sec-Fetch-Site': 'cross-site' },
        { 'Sec-Fetch-Site': 'cross-site' },
      ]
      for (const headers of own) expect([headers, await post(headers)]).toEqual([headers, 201])
      for (const headers of foreign) {
        expect([headers, await post(headers)]).toEqual([headers, 403])
        expect((await call(url, 'GET', '/v1/sessions', undefined, headers)).status).toBe(200)
      }
    })
  })

  it('decides which host names lead to a service of this machine alone', async () => {
    await withVariables({ CORS_ALLOWED_ORIGINS: APP }, async ({ url }) => {
      const ask = async (host: string) => (await exchange(url, head('GET', '/v1/sessions', { Host: host }))).status
      for (const host of ['localhost:9300', 'a.localhost', '127.0.0.1', '[::1]:80', '192.168.1.2', new URL(APP).host]) {
        expect([host, await ask(host)]).toEqual([host, 200])
      }
      for (const host of ['evil.example.com', 'localhost.evil.example.com', '127.0.0.1.evil.example.com', 'x:y']) {
        expect([host, await ask(host)]).toEqual([host, 403])
      }
    })
  })

  it('is not there for any other origin', async () => {
    await withVariables({ CORS_ALLOWED_ORIGINS: APP }, async ({ url }) => {
      for (const origin of ['https://evil.example.com', `${APP}.evil.com`, 'null']) {
        const { headers } = await call(url, 'GET', '/v1/agents', undefined, { Origin: origin })
        expect(headers.get('access-control-allow-origin')).toBeFalsy()
      }
    })
  })
})
