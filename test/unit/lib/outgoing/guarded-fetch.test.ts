import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { brotliCompressSync, createGzip, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import {
  createGuardedFetch,
  type GuardedFetch,
  type GuardedFetchOptions,
} from '../../../../lib/outgoing/guarded-fetch.ts'
import { OutgoingError } from '../../../../lib/outgoing/outgoing-error.ts'
import { rebinding, startWebServer, type WebServer } from './web-server.ts'

const MiB = 1024 * 1024
const PATIENT = { headersTimeoutMs: 60_000, idleTimeoutMs: 60_000, maxBytes: 5 * MiB }

let routes: Record<string, RequestListener> = {}
let server: WebServer
const guarded: GuardedFetch[] = []

beforeAll(async () => {
  server = await startWebServer((request, response) => routes[request.url ?? '']?.(request, response))
})
afterAll(() => server.stop())
beforeEach(() => {
  server.requests.length = 0
  routes = { '/text': (_, response) => response.end('Hello') }
})
afterEach(() => Promise.all(guarded.splice(0).map((one) => one.close())))

function guard(options: Partial<GuardedFetchOptions> = {}): GuardedFetch['fetch'] {
  const one = createGuardedFetch({ ...PATIENT, allowPrivateNetwork: true, ...options })
  guarded.push(one)
  return one.fetch
}

async function failure(promise: Promise<unknown>): Promise<OutgoingError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof OutgoingError) return error
  throw new Error('There was no OutgoingError.', { cause: error })
}

const codesOf = (error: unknown): unknown[] =>
  error instanceof Error ? ['code' in error ? error.code : undefined, ...codesOf(error.cause)] : []

describe('an answer', () => {
  it('has status, headers and body', async () => {
    routes['/missing'] = (_, response) => response.writeHead(404, 'Not here', { 'x-one': '1' }).end('nothing')
    const answer = await guard()(`${server.url}/missing`)
    expect([answer.status, answer.statusText, answer.headers.get('x-one')]).toEqual([404, 'Not here', '1'])
    expect(await answer.text()).toBe('nothing')
    expect(answer).toBeInstanceOf(Response)
  })

  it('passes chunk by chunk, before it ends', async () => {
    let write: (text: string) => void = () => {}
    routes['/stream'] = (_, response) => {
      write = (text) => (text === '' ? response.end() : response.write(text))
      write('one')
    }
    const { body } = await guard()(`${server.url}/stream`)
    const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
    expect(await reader?.read()).toEqual({ done: false, value: 'one' })
    write('two')
    expect(await reader?.read()).toEqual({ done: false, value: 'two' })
    write('')
    expect(await reader?.read()).toMatchObject({ done: true })
  })

  it('may wait for more, but never at its beginning or for its end', async () => {
    let write: (text: string) => void = () => {}
    routes['/stream'] = (_, response) => {
      write = (text) => (text === '' ? response.end() : response.write(text))
      write('one')
    }
    const { body } = await guard({ joinMs: 60_000 })(`${server.url}/stream`)
    const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
    expect(await reader?.read()).toEqual({ done: false, value: 'one' })
    // An eighth of 400 ms.
    await sleep(400)
    write('two')
    expect(await reader?.read()).toEqual({ done: false, value: 'two' })
    const next = reader?.read()
    write('three')
    await sleep(10)
    write('four')
    await sleep(10)
    write('')
    expect(await next).toEqual({ done: false, value: 'threefour' })
    expect(await reader?.read()).toMatchObject({ done: true })
  })

  it('that breaks off is passed on first, up to the break', async () => {
    routes['/cut'] = (_, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('one')
      setTimeout(() => response.write('two', () => response.destroy()), 200)
    }
    const { body } = await guard({ joinMs: 60_000 })(`${server.url}/cut`)
    const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
    expect(await reader?.read()).toEqual({ done: false, value: 'one' })
    expect(await reader?.read()).toEqual({ done: false, value: 'two' })
    await expect(reader?.read()).rejects.toMatchObject({ reason: 'unreadable' })
  })

  it.each<[string, (bytes: Buffer) => Buffer]>([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
    ['deflate, GZIP', (bytes) => gzipSync(deflateSync(bytes))],
    ['none-such', (bytes) => bytes],
  ])('is unpacked: %s', async (encoding, pack) => {
    const bytes = Buffer.from('ä'.repeat(300_000))
    routes['/packed'] = (_, response) => response.writeHead(200, { 'content-encoding': encoding }).end(pack(bytes))
    const answer = await guard()(`${server.url}/packed`)
    expect(bytes.equals(await answer.bytes())).toBe(true)
  })

  it('is unpacked up to the break', async () => {
    const packer = createGzip()
    routes['/packed'] = (_, response) => {
      packer.pipe(response.writeHead(200, { 'content-encoding': 'gzip' }))
      packer.write('one')
      packer.flush()
    }
    const { body } = await guard()(`${server.url}/packed`)
    const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
    expect(await reader?.read()).toEqual({ done: false, value: 'one' })
    packer.end('two')
    expect(await reader?.read()).toEqual({ done: false, value: 'two' })
    expect(await reader?.read()).toMatchObject({ done: true })
  })

  it('is held back by a slow reader', async () => {
    let isFull = false
    routes['/large'] = (_, response) => {
      response.write(Buffer.alloc(20 * MiB))
      setTimeout(() => {
        isFull = response.writableNeedDrain
        response.end()
      }, 300)
    }
    const answer = await guard({ maxBytes: 50 * MiB })(`${server.url}/large`)
    await sleep(400)
    expect(isFull).toBe(true)
    expect((await answer.bytes()).length).toBe(20 * MiB)
  })

  it.each([204, 304])('may have no body: %s', async (status) => {
    routes['/empty'] = (_, response) => response.writeHead(status).end()
    const answer = await guard()(`${server.url}/empty`)
    expect([answer.status, answer.body]).toEqual([status, null])
  })

  it('with a status that does not exist is unreadable', async () => {
    routes['/999'] = (_, response) => response.writeHead(999).end('what?')
    expect(await failure(guard()(`${server.url}/999`))).toMatchObject({ reason: 'unreadable' })
  })

  it.each([
    ['plain', {}, (bytes: Buffer) => bytes],
    ['compressed', { 'content-encoding': 'gzip' }, (bytes: Buffer) => gzipSync(bytes)],
  ])('breaks off beyond its limit: %s', async (_, headers, pack) => {
    routes['/exact'] = (_, response) => response.writeHead(200, headers).end(pack(Buffer.alloc(MiB)))
    routes['/large'] = (_, response) => response.writeHead(200, headers).end(pack(Buffer.alloc(200 * MiB)))
    const fetch = guard({ maxBytes: MiB })
    expect((await (await fetch(`${server.url}/exact`)).bytes()).length).toBe(MiB)
    let length = 0
    const { body } = await fetch(`${server.url}/large`)
    const reading = (async () => {
      for await (const chunk of body ?? []) length += chunk.length
    })()
    expect(await failure(reading)).toMatchObject({
      reason: 'too_large',
      message: 'The answer has more than 1048576 bytes.',
    })
    expect(length).toBeLessThanOrEqual(MiB)
  })
})

describe('a request', () => {
  it.each<[string, string | URLSearchParams | Uint8Array<ArrayBuffer>]>([
    ['text', 'ä'.repeat(2 * MiB)],
    ['bytes', new Uint8Array(3 * MiB).fill(7)],
    ['a form', new URLSearchParams({ grant: 'a&b' })],
  ])('sends its method, headers and whole body: %s', async (_, body) => {
    let received = Buffer.alloc(0)
    routes['/post'] = async (request, response) => {
      received = Buffer.concat(await request.toArray())
      response.end()
    }
    await guard()(`${server.url}/post`, { method: 'PUT', headers: { authorization: 'Bearer s' }, body })
    expect(server.requests[0]).toMatchObject({ method: 'PUT', headers: { authorization: 'Bearer s' } })
    expect(received.equals(Buffer.from(body instanceof Uint8Array ? body : `${body}`))).toBe(true)
    expect(server.requests[0]?.headers['content-length']).toBe(`${received.length}`)
  })

  it('has a limit on its body, in bytes', async () => {
    const fetch = guard({ maxRequestBytes: 4 })
    const post = (body: string) => fetch(`${server.url}/text`, { method: 'POST', body })
    expect((await post('ää')).status).toBe(200)
    expect(await failure(post('äää'))).toMatchObject({
      reason: 'too_large',
      message: 'The request has 6 bytes; at most 4 can be sent.',
    })
    expect(server.requests).toHaveLength(1)
  })

  it('is refused without showing a secret header that cannot be sent', async () => {
    const error = await failure(guard()(`${server.url}/text`, { headers: { authorization: 'Bearer se\ncret' } }))
    expect([error.reason, error.cause]).toEqual(['invalid_request', undefined])
    expect(error.message).not.toContain('cret')
  })

  it('takes no Request and no body of unknown size', async () => {
    const fetch = guard()
    await expect(fetch(new Request(`${server.url}/text`))).rejects.toThrow('takes a URL')
    await expect(fetch(`${server.url}/text`, { method: 'POST', body: new FormData() })).rejects.toThrow('text or bytes')
    expect(server.requests).toHaveLength(0)
  })
})

describe('a redirect', () => {
  const headers = { authorization: 'Bearer secret' }

  it.each([301, 302, 303, 307, 308])('is not followed: %s', async (status) => {
    const second = await startWebServer((_, response) => response.end())
    routes['/v1'] = (_, response) => response.writeHead(status, { location: `${second.url}/v2?key=secret` }).end('go')
    const error = await failure(guard()(`${server.url}/v1`, { method: 'POST', headers, body: 'x' }))
    await second.stop()
    expect([error.reason, error.message, second.requests.length]).toEqual([
      'redirect',
      `The server at 127.0.0.1:${server.port} redirects to ${second.url}/v2, and redirects are not followed; its URL in the settings should be the final address.`,
      0,
    ])
  })

  it.each(['http://me:pass@example.com/', 'javascript:alert(1)', `/${'long'.repeat(1000)}`, 'http://['])(
    'is described without its target: %#',
    async (location) => {
      routes['/v1'] = (_, response) => response.writeHead(302, { location }).end()
      const { message } = await failure(guard()(`${server.url}/v1`))
      expect(message).toContain(`${server.port} redirects, and`)
    },
  )

  it('without a location is an answer', async () => {
    routes['/300'] = (_, response) => response.writeHead(300).end('choose')
    expect(await (await guard()(`${server.url}/300`)).text()).toBe('choose')
  })
})

describe('addresses that are refused', () => {
  it.each(['example.com', 'ftp://example.com/', 'https://user:secret@example.com/'])('%s', async (url) => {
    const error = await failure(guard()(url))
    expect([error.reason, error.message.includes('secret')]).toEqual(['invalid_url', false])
  })

  it.each([
    'http://127.0.0.1:PORT/text',
    'http://2130706433:PORT/text',
    'http://0x7f.1:PORT/text',
    'http://[::ffff:127.0.0.1]:PORT/text',
    'http://[::1]:PORT/text',
    'http://169.254.169.254/latest',
    'http://localhost:PORT/text',
  ])('%s, and nothing is sent', async (url) => {
    const fetching = guard({ allowPrivateNetwork: false })(url.replace('PORT', `${server.port}`))
    expect(await failure(fetching)).toMatchObject({ reason: 'private_address' })
    expect(server.requests).toHaveLength(0)
  })

  it('a name with private addresses, although an open guarded fetch is connected to it', async () => {
    const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
    const url = `http://inside.example:${server.port}/text`
    expect(await (await guard({ resolve })(url)).text()).toBe('Hello')
    const closed = guard({ resolve, allowPrivateNetwork: false })
    expect(await failure(closed(url))).toMatchObject({ reason: 'private_address' })
    expect(await failure(closed(new URL(url)))).toMatchObject({ reason: 'private_address' })
    expect(server.requests).toHaveLength(1)
  })

  it('the second address of a name that a connection has checked the first of', async () => {
    const { resolve, asked, allowedHosts } = rebinding(server.port)
    const closed = () => guard({ resolve, allowedHosts, allowPrivateNetwork: false })
    const url = `http://rebind.example:${server.port}/text`
    expect(await (await closed()(url)).text()).toBe('Hello')
    expect(asked).toEqual(['rebind.example'])
    expect(await failure(closed()(url))).toMatchObject({ reason: 'private_address' })
    expect(server.requests).toHaveLength(1)
  })

  it('all, when the options they were opened under change', async () => {
    const options = { ...PATIENT, allowPrivateNetwork: false }
    const one = createGuardedFetch(options)
    guarded.push(one)
    options.allowPrivateNetwork = true
    expect(await failure(one.fetch(`${server.url}/text`))).toMatchObject({ reason: 'private_address' })
  })
})

it('a connection is given up before servers close theirs, if they do not say when', async () => {
  const { promise: closing, resolve } = Promise.withResolvers<string>()
  routes['/text'] = ({ socket }, response) => {
    socket.once('end', () => resolve('by the client')).once('close', () => resolve('by the server'))
    // Node then leaves out for how long it keeps the connection, which is 5 s.
    response.setHeader('connection', 'keep-alive').end('Hello')
  }
  expect(await (await guard()(`${server.url}/text`)).text()).toBe('Hello')
  expect(await closing).toBe('by the client')
})

describe('a server that does not answer as it should', () => {
  it('is reported with the reason, and with the code of the connection in a cause', async () => {
    const free = await startWebServer(() => {})
    await free.stop()
    const refused = await failure(guard()(free.url))
    expect([refused.reason, codesOf(refused)]).toEqual(['unreachable', [undefined, 'ECONNREFUSED']])
    const resolve = () => Promise.reject(Object.assign(new Error('nothing'), { code: 'ENOTFOUND' }))
    const unknown = await failure(guard({ resolve })('http://no.example/'))
    expect([unknown.reason, codesOf(unknown)]).toEqual(['unknown_host', [undefined, 'ENOTFOUND']])
  })

  it('is reported when its body breaks off or is not what it says', async () => {
    routes['/cut'] = (_, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('ab', () => response.destroy())
    }
    routes['/broken'] = (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('no gzip')
    const cut = await failure(guard()(`${server.url}/cut`).then((answer) => answer.text()))
    expect([cut.reason, codesOf(cut)[1]]).toEqual(['unreadable', 'UND_ERR_SOCKET'])
    const broken = await failure(guard()(`${server.url}/broken`).then((answer) => answer.text()))
    expect([broken.reason, codesOf(broken)[1]]).toEqual(['unreadable', 'Z_DATA_ERROR'])
  })

  it('is given up when no head comes, even while its name is resolved', async () => {
    routes['/silent'] = () => {}
    const resolve = () => new Promise<never>(() => {})
    const silent = await failure(guard({ headersTimeoutMs: 100 })(`${server.url}/silent`))
    expect([silent.reason, silent.message, codesOf(silent)[1]]).toEqual([
      'timeout',
      'There was no answer within 0.1 s.',
      'UND_ERR_HEADERS_TIMEOUT',
    ])
    const unresolved = guard({ headersTimeoutMs: 100, resolve })('http://slow.example/')
    expect(await failure(unresolved)).toMatchObject({ reason: 'timeout' })
  })

  it('is given up when its body pauses', async () => {
    routes['/pausing'] = (_, response) => response.write('a')
    const { body } = await guard({ idleTimeoutMs: 100 })(`${server.url}/pausing`)
    const reader = body?.getReader()
    expect((await reader?.read())?.done).toBe(false)
    const paused = await failure(reader?.read() ?? Promise.resolve())
    expect([paused.reason, paused.message, codesOf(paused)[1]]).toEqual([
      'timeout',
      'The answer paused for more than 0.1 s.',
      'UND_ERR_BODY_TIMEOUT',
    ])
  })

  it('may take longer for its body than for its head', async () => {
    let write: () => void = () => {}
    routes['/long'] = (_, response) => {
      write = () => response.write('a')
      write()
    }
    const { body } = await guard({ headersTimeoutMs: 300 })(`${server.url}/long`)
    const reader = body?.getReader()
    const startedAt = performance.now()
    while (performance.now() - startedAt < 400) {
      expect((await reader?.read())?.done).toBe(false)
      setTimeout(write, 20)
    }
  })
})

describe('connections', () => {
  const sockets = () => new Set(server.requests.map(({ socket }) => socket))

  it('are kept for the next request', async () => {
    const fetch = guard()
    for (let count = 0; count < 10; count++) await (await fetch(`${server.url}/text`)).text()
    expect(server.requests).toHaveLength(10)
    // The end of a body is read shortly before its connection is free again.
    expect(sockets().size).toBeLessThanOrEqual(2)
  })

  it('are not shared between guarded fetches', async () => {
    for (let count = 0; count < 2; count++) await (await guard()(`${server.url}/text`)).text()
    expect(sockets().size).toBe(2)
  })

  it.each(['before the head', 'within the body'])('end when the caller aborts %s, with its reason', async (place) => {
    const caller = new AbortController()
    const closed = Promise.withResolvers<void>()
    routes['/wait'] = (request, response) => {
      request.socket.once('close', closed.resolve)
      if (place === 'within the body') response.write('a')
      else caller.abort(new Error('cancelled'))
    }
    const reading = guard()(`${server.url}/wait`, { signal: caller.signal }).then(async ({ body }) => {
      const reader = body?.getReader()
      await reader?.read()
      caller.abort(new Error('cancelled'))
      await reader?.read()
    })
    await expect(reading).rejects.toThrow('cancelled')
    await closed.promise
    await expect(guard()(`${server.url}/text`, { signal: caller.signal })).rejects.toThrow('cancelled')
  })

  it('end when the body is cancelled, and when it is too large', async () => {
    const closed: Promise<unknown>[] = []
    routes['/wait'] = (request, response) => {
      closed.push(once(request.socket, 'close'))
      response.write('long')
    }
    await (await guard()(`${server.url}/wait`)).body?.cancel()
    const tooLarge = guard({ maxBytes: 3 })(`${server.url}/wait`).then((answer) => answer.text())
    expect(await failure(tooLarge)).toMatchObject({ reason: 'too_large' })
    expect(closed).toHaveLength(2)
    await Promise.all(closed)
  })

  it('end when the guarded fetch is closed, with their requests', async () => {
    const one = createGuardedFetch({ ...PATIENT, allowPrivateNetwork: true })
    const closed: Promise<unknown>[] = []
    const closing =
      (answer: RequestListener): RequestListener =>
      (request, response) => {
        closed.push(once(request.socket, 'close'))
        answer(request, response)
      }
    routes['/wait'] = closing((_, response) => response.write('a'))
    routes['/idle'] = closing((_, response) => response.end())
    const open = await one.fetch(`${server.url}/wait`)
    await (await one.fetch(`${server.url}/idle`)).text()
    await one.close()
    expect(await failure(open.text())).toMatchObject({ reason: 'unreadable' })
    expect(closed).toHaveLength(2)
    await Promise.all(closed)
    expect(await failure(one.fetch(`${server.url}/text`))).toMatchObject({ reason: 'unreachable' })
  })
})
