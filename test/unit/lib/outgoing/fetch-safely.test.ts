import type { RequestListener, ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { fetchSafely } from '../../../../lib/outgoing/fetch-safely.ts'
import { OutgoingError } from '../../../../lib/outgoing/outgoing-error.ts'
import { rebinding, startWebServer, type WebServer } from './web-server.ts'

const MiB = 1024 * 1024
const open = { allowPrivateNetwork: true }
const closed = { allowPrivateNetwork: false }

const redirect = (response: ServerResponse, location: string, status = 302) =>
  response.writeHead(status, { location }).end('elsewhere')

const routes: Record<string, RequestListener> = {
  '/text': (_, response) => response.writeHead(200, { 'content-type': 'text/plain' }).end('Hello'),
  '/missing': (_, response) => response.writeHead(404, { 'content-type': 'text/plain' }).end('not here'),
  '/once': (_, response) => redirect(response, '/text?from=once'),
  '/around': (_, response) => redirect(response, '/around'),
  '/303': (_, response) => redirect(response, '/text', 303),
  '/307': (_, response) => redirect(response, '/text', 307),
  '/to-file': (_, response) => redirect(response, 'file:///etc/passwd'),
  '/to-login': (_, response) => redirect(response, 'http://a:b@example.com/'),
  '/304': (_, response) => response.writeHead(304).end(),
  '/large': (_, response) => response.end(Buffer.alloc(3 * MiB, 'a')),
  '/bomb': (_, response) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(200 * MiB))),
  '/packed': (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('unpacked')),
  '/broken': (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('no gzip'),
  '/cut': (_, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('ab')
    setTimeout(() => response.destroy(), 20)
  },
  '/silent': () => {},
  '/slow': (_, response) => {
    response.writeHead(200).write('a')
  },
}

let server: WebServer
beforeAll(async () => {
  server = await startWebServer((request, response) => {
    routes[request.url?.split('?')[0] ?? '']?.(request, response)
  })
})
afterAll(() => server.stop())
beforeEach(() => {
  server.requests.length = 0
})

const failure = async (fetching: Promise<unknown>): Promise<{ reason: string; message: string }> => {
  const error = await fetching.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof OutgoingError)) throw new Error(`no OutgoingError but ${error}`)
  return { reason: error.reason, message: error.message }
}

describe('an answer', () => {
  it('has status, address, content type and body', async () => {
    expect(await fetchSafely(open, `${server.url}/text#top`)).toEqual({
      status: 200,
      url: `${server.url}/text#top`,
      contentType: 'text/plain',
      body: Buffer.from('Hello'),
      truncated: false,
    })
    expect(await fetchSafely(open, `${server.url}/missing`)).toMatchObject({
      status: 404,
      body: Buffer.from('not here'),
    })
    expect(await fetchSafely(open, `${server.url}/304`)).toMatchObject({
      status: 304,
      contentType: '',
      body: Buffer.alloc(0),
    })
  })

  it('is requested with the given method and headers', async () => {
    await fetchSafely(open, `${server.url}/text`, { method: 'POST', headers: { 'x-one': '1' } })
    expect(server.requests[0]).toMatchObject({ method: 'POST', headers: { 'x-one': '1' } })
  })

  it('is cut off at its limit, counted after decompression', async () => {
    const large = await fetchSafely(open, `${server.url}/large`, { maxBytes: MiB })
    expect([large.body.length, large.truncated]).toEqual([MiB, true])
    const exact = await fetchSafely(open, `${server.url}/large`, { maxBytes: 3 * MiB })
    expect([exact.body.length, exact.truncated]).toEqual([3 * MiB, false])
    const bomb = await fetchSafely(open, `${server.url}/bomb`)
    expect([bomb.body.length, bomb.truncated]).toEqual([5 * MiB, true])
    expect((await fetchSafely(open, `${server.url}/packed`)).body.toString()).toBe('unpacked')
  })
})

describe('redirects', () => {
  it('are followed, and the URL is the last one', async () => {
    const { url, body } = await fetchSafely(open, `${server.url}/once`)
    expect([url, body.toString()]).toEqual([`${server.url}/text?from=once`, 'Hello'])
  })

  it('are followed five times', async () => {
    expect(await failure(fetchSafely(open, `${server.url}/around`))).toEqual({
      reason: 'too_many_redirects',
      message: 'The address redirects more than 5 times.',
    })
    expect(server.requests).toHaveLength(6)
  })

  it('keep the method except for 303', async () => {
    await fetchSafely(open, `${server.url}/307`, { method: 'PUT' })
    await fetchSafely(open, `${server.url}/303`, { method: 'PUT' })
    expect(server.requests.map(({ method }) => method)).toEqual(['PUT', 'PUT', 'PUT', 'GET'])
  })

  it.each([
    ['/to-file', 'Only http and https'],
    ['/to-login', 'user name or password'],
  ])('to a forbidden URL are refused: %s', async (path, sentence) => {
    expect(await failure(fetchSafely(open, server.url + path))).toEqual({
      reason: 'invalid_url',
      message: expect.stringContaining(sentence),
    })
  })

  it.each(['http://127.0.0.1:PORT/text', 'http://localhost:PORT/text', 'http://169.254.169.254/latest'])(
    'from the internet to a private network are refused: %s',
    async (location) => {
      // The local server stands for a public one until it has answered.
      const guard = { allowPrivateNetwork: true }
      const outside = await startWebServer((_, response) => {
        guard.allowPrivateNetwork = false
        redirect(response, location.replace('PORT', `${server.port}`))
      })
      const { reason } = await failure(fetchSafely(guard, outside.url))
      await outside.stop()
      expect([reason, outside.requests.length, server.requests.length]).toEqual(['private_address', 1, 0])
    },
  )
})

describe('addresses that are refused', () => {
  it.each([
    ['no URL', 'example.com/a', 'not a valid URL'],
    ['another protocol', 'ftp://example.com/', 'Only http and https'],
    ['a file', 'file:///etc/passwd', 'Only http and https'],
    ['a password', 'https://user:secret@example.com/', 'user name or password'],
    ['a user', 'https://user@example.com/', 'user name or password'],
  ])('%s', async (_, url, sentence) => {
    expect(await failure(fetchSafely(open, url))).toEqual({
      reason: 'invalid_url',
      message: expect.stringContaining(sentence),
    })
  })

  it.each([
    'http://127.0.0.1:PORT/text',
    'http://2130706433:PORT/text',
    'http://0x7f.1:PORT/text',
    'http://0177.0.0.01:PORT/text',
    'http://[::ffff:127.0.0.1]:PORT/text',
    'http://[::1]:PORT/text',
    'http://localhost:PORT/text',
    'http://0:PORT/text',
  ])('%s, and nothing is sent', async (url) => {
    expect(await failure(fetchSafely(closed, url.replace('PORT', `${server.port}`)))).toEqual({
      reason: 'private_address',
      message: expect.stringContaining('is not on the public internet'),
    })
    expect(server.requests).toHaveLength(0)
  })

  it('the second address of a name that a connection has checked the first of', async () => {
    const { resolve, asked, allowedHosts } = rebinding(server.port)
    const url = `http://rebind.example:${server.port}/text`
    expect((await fetchSafely({ ...closed, allowedHosts, resolve }, url)).status).toBe(200)
    expect(asked).toEqual(['rebind.example'])
    const fetching = fetchSafely({ ...closed, allowedHosts, resolve }, url)
    expect((await failure(fetching)).reason).toBe('private_address')
    expect(asked).toHaveLength(2)
    expect(server.requests).toHaveLength(1)
  })

  it('the private ones of a name that has both', async () => {
    const resolve = async () => [
      { address: '127.0.0.1', family: 4 },
      { address: '::ffff:127.0.0.1', family: 6 },
      { address: '::1', family: 6 },
    ]
    const fetching = fetchSafely({ ...closed, resolve }, `http://both.example:${server.port}/text`)
    expect((await failure(fetching)).reason).toBe('private_address')
    expect(server.requests).toHaveLength(0)
    const allowed = await fetchSafely({ ...open, resolve }, `http://both.example:${server.port}/text`)
    expect(allowed.status).toBe(200)
  })
})

describe('a server that does not answer as it should', () => {
  it('is reported as unreachable, unknown or unreadable', async () => {
    const free = await startWebServer(() => {})
    await free.stop()
    expect(await failure(fetchSafely(open, free.url))).toEqual({
      reason: 'unreachable',
      message: 'The connection to 127.0.0.1 failed (ECONNREFUSED).',
    })
    const resolve = () => Promise.reject(Object.assign(new Error('nothing'), { code: 'ENOTFOUND' }))
    expect(await failure(fetchSafely({ ...closed, resolve }, 'http://no.example/'))).toEqual({
      reason: 'unknown_host',
      message: 'There is no host no.example.',
    })
    expect((await failure(fetchSafely(open, `${server.url}/broken`))).reason).toBe('unreadable')
    expect((await failure(fetchSafely(open, `${server.url}/cut`))).reason).toBe('unreadable')
  })

  it.each(['/silent', '/slow'])('is given up at the timeout: %s', async (path) => {
    expect(await failure(fetchSafely(open, server.url + path, { timeoutMs: 300 }))).toEqual({
      reason: 'timeout',
      message: 'There was no whole answer within 0.3 s.',
    })
  })

  it('is given up at the timeout, even while its name is resolved', async () => {
    const resolve = () => new Promise<never>(() => {})
    const fetching = fetchSafely({ ...open, resolve }, 'http://slow.example/', { timeoutMs: 300 })
    expect((await failure(fetching)).reason).toBe('timeout')
  })

  it.each(['/silent', '/slow'])('is given up when the caller aborts, with that reason: %s', async (path) => {
    const caller = new AbortController()
    const fetching = fetchSafely(open, server.url + path, { signal: caller.signal })
    setTimeout(() => caller.abort(new Error('cancelled')), 100)
    await expect(fetching).rejects.toThrow('cancelled')
    await expect(fetchSafely(open, server.url, { signal: caller.signal })).rejects.toThrow('cancelled')
  })
})
