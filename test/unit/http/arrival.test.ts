import { EventEmitter } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import type { Context } from 'koa'
import { z } from 'zod'
import { limitArrival } from '../../../api/http/arrival.ts'
import { type Handle, reply } from '../../../api/http/handle.ts'
import { waitFor } from '../../support/http.ts'
import { defineEndpoint, type PlantedApp, plant } from '../../support/planted.ts'
import { exchange, head } from '../../support/raw.ts'

const MIB = 1024 * 1024
const base = { operationId: 'planted', method: 'POST', tag: 'things', access: 'public', summary: 'Planted' } as const
const json = defineEndpoint({ ...base, path: '/v1/json', body: z.unknown(), responses: { 204: null } })
const held = defineEndpoint({ ...json, path: '/v1/held' })
const largeHeld = defineEndpoint({ ...json, path: '/v1/large-held', bodyLimitBytes: 5 * MIB })
const upload = defineEndpoint({
  ...base,
  path: '/v1/upload',
  multipart: { file: { field: 'file', maxBytes: 1_000_000 } },
  responses: { 204: null },
})

const ARRIVAL = { requestMs: 1000, uploadMs: 4000, windowMs: 500, windowBytes: 100, lingerMs: 300 }
/** Memory for bodies. One owner's share is a quarter: 6 MiB for plain ones, 2 MiB for compressed ones. */
const BODY_MEMORY_BYTES = 32 * MIB

let app: PlantedApp
let hasty: PlantedApp
/** Lets a body take its time: what is tested with it is not when it arrives. */
let patient: PlantedApp
let release: () => void
let releaseLarge: () => void
const counts = { json: 0, upload: 0, held: 0, largeHeld: 0 }
const uploadFailures: unknown[] = []
beforeAll(async () => {
  const gate = new Promise<void>((resolve) => {
    release = resolve
  })
  const register = (handle: Handle) => {
    handle(json, async () => {
      counts.json++
      return reply(204, undefined)
    })
    handle(held, async () => {
      counts.held++
      await gate
      return reply(204, undefined)
    })
    handle(largeHeld, async () => {
      counts.largeHeld++
      await new Promise<void>((resolve) => {
        releaseLarge = resolve
      })
      return reply(204, undefined)
    })
    handle(upload, async ({ body }) => {
      try {
        for await (const _ of body.file.chunks);
      } catch (error) {
        uploadFailures.push(error)
        throw error
      }
      counts.upload++
      return reply(204, undefined)
    })
  }
  hasty = await plant(register, { arrival: ARRIVAL, bodyMemoryBytes: BODY_MEMORY_BYTES })
  patient = await plant(register, { bodyMemoryBytes: BODY_MEMORY_BYTES })
})
beforeEach(() => {
  app = hasty
})
afterAll(async () => {
  await hasty.close()
  await patient.close()
})

type Client = { socket: Socket; answer: () => string; hasEnded: () => boolean; openedAt: number }

/** Sends a head and the given part of the body. The test sends the rest. */
function open(path: string, headers: Record<string, string | number>, body: string | Uint8Array = ''): Client {
  const socket = connect(Number(new URL(app.url).port), '127.0.0.1')
  let text = ''
  let ended = false
  socket.on('data', (data) => {
    text += data
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    ended = true
  })
  socket.write(head('POST', path, { Connection: 'keep-alive', ...headers }))
  socket.write(body)
  return { socket, answer: () => text, hasEnded: () => ended, openedAt: Date.now() }
}

const JSON_TYPE = { 'Content-Type': 'application/json' }
const UPLOAD = { 'Content-Type': 'multipart/form-data; boundary=b', 'Content-Length': 10_000 }
const FILE_BEGINS = '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'

describe('a body that does not arrive in time', () => {
  it('is 408, its connection ends soon, and nothing is done', async () => {
    const before = counts.json
    const client = open('/v1/json', { ...JSON_TYPE, 'Content-Length': 10 }, '{"a":')
    await waitFor(async () => client.answer() !== '', 'the answer')
    expect(Date.now() - client.openedAt).toBeGreaterThan(ARRIVAL.requestMs * 0.9)
    expect(client.answer()).toMatch(/^HTTP\/1\.1 408 /)
    expect(client.answer()).toContain('{"error":"The request did not arrive in time","code":"timed_out"}')
    // The rest arrives too late.
    client.socket.write('1234}')
    await sleep(100)
    expect(counts.json).toBe(before)
    await waitFor(async () => client.hasEnded(), 'the connection to end')
  })

  it.each([
    ['/v1/none', 10, 404],
    ['/v1/json', 1_000_000_000, 413],
  ])('ends its connection soon after an earlier answer: %s', async (path, length, status) => {
    const client = open(path, { ...JSON_TYPE, 'Content-Length': length }, '{"a":')
    await waitFor(async () => client.answer() !== '', 'the answer')
    expect(client.answer()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    await waitFor(async () => client.hasEnded(), 'the connection to end')
    expect(Date.now() - client.openedAt).toBeLessThan(ARRIVAL.requestMs)
  })

  it('does not affect a complete one, whose connection stays', async () => {
    const client = open('/v1/json', { ...JSON_TYPE, 'Content-Length': 2 }, '{}')
    await waitFor(async () => client.answer() !== '', 'the answer')
    await sleep(ARRIVAL.requestMs * 1.5)
    expect(client.hasEnded()).toBe(false)
    client.socket.write(head('POST', '/v1/json', { ...JSON_TYPE, 'Content-Length': 2, Connection: 'close' }))
    client.socket.write('{}')
    await waitFor(async () => client.hasEnded(), 'the second answer')
    expect(client.answer().match(/HTTP\/1\.1 204/g)).toHaveLength(2)
  })
})

describe('an upload', () => {
  it('may take longer, as long as it makes progress', async () => {
    const client = open('/v1/upload', { ...UPLOAD, Connection: 'close' }, FILE_BEGINS)
    const end = '\r\n--b--\r\n'
    const middle = 'x'.repeat(10_000 - FILE_BEGINS.length - end.length)
    for (let at = 0; at < 10; at++) {
      client.socket.write(middle.slice((at * middle.length) / 10, ((at + 1) * middle.length) / 10))
      await sleep(200)
    }
    client.socket.write(end)
    await waitFor(async () => client.answer() !== '', 'the answer')
    expect(client.answer()).toMatch(/^HTTP\/1\.1 204 /)
    expect(Date.now() - client.openedAt).toBeGreaterThan(ARRIVAL.requestMs * 1.5)
  })

  it.each([
    ['it stands still', 0],
    ['it is too slow', 10],
    ['it takes too long', 200],
  ])('is 408 when %s', async (_, bytes) => {
    uploadFailures.length = 0
    const before = counts.upload
    const client = open('/v1/upload', UPLOAD, FILE_BEGINS)
    while (client.answer() === '' && !client.hasEnded()) {
      if (bytes > 0) client.socket.write('x'.repeat(bytes))
      await sleep(200)
    }
    expect(client.answer()).toMatch(/^HTTP\/1\.1 408 /)
    const tookMs = Date.now() - client.openedAt
    expect(tookMs).toBeGreaterThan(ARRIVAL.requestMs * 0.9)
    if (bytes === 200) expect(tookMs).toBeGreaterThan(ARRIVAL.uploadMs * 0.7)
    await waitFor(async () => client.hasEnded(), 'the connection to end')
    expect(counts.upload).toBe(before)
    // Without any part of the file, the handler is not called.
    expect(uploadFailures).toEqual(bytes === 0 ? [] : [expect.objectContaining({ status: 408 })])
  })
})

describe('bodies in memory', () => {
  beforeEach(() => {
    app = patient
  })
  const twoMib = JSON.stringify('x'.repeat(2 * MIB - 2))

  it('have a common limit, and each frees its share', async () => {
    const post = (path: string, body: string) =>
      exchange(app.url, head('POST', path, { ...JSON_TYPE, 'Content-Length': body.length }), body)
    const allButOne = twoMib.slice(0, -1)
    const clients = [1, 2, 3].map(() => open('/v1/held', { ...JSON_TYPE, 'Content-Length': 2 * MIB }, allButOne))
    // Hardly anything is left then, and what asks for it takes nothing from them.
    const refused = await waitFor(async () => {
      const answer = await post('/v1/json', '{"a":"bcdef"}')
      return answer.status !== 204 && answer
    }, 'three bodies to be nearly there')
    expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '2' } })
    expect(JSON.parse(refused.body).error).toMatch(/too many large requests/)
    // Compressed bodies have their own share.
    const small = gzipSync('{}')
    const headers = { ...JSON_TYPE, 'Content-Encoding': 'gzip', 'Content-Length': small.length }
    expect((await exchange(app.url, head('POST', '/v1/json', headers), small)).status).toBe(204)
    // A body that has been read takes no room while its handler is at work.
    for (const { socket } of clients) socket.write(twoMib.slice(-1))
    await waitFor(async () => counts.held === 3, 'three bodies')
    expect((await post('/v1/json', twoMib)).status).toBe(204)
    release()
    await waitFor(async () => clients.every(({ answer }) => answer() !== ''), 'the three answers')
    for (let again = 0; again < 10; again++) expect((await post('/v1/json', twoMib)).status).toBe(204)
    for (const { socket } of clients) socket.destroy()
  })

  it('count until they are handled where they may be large', async () => {
    const large = JSON.stringify('x'.repeat(5 * MIB - 2))
    const client = open('/v1/large-held', { ...JSON_TYPE, 'Content-Length': large.length }, large)
    await waitFor(async () => counts.largeHeld === 1, 'the large body')
    const post = () =>
      exchange(app.url, head('POST', '/v1/json', { ...JSON_TYPE, 'Content-Length': twoMib.length }), twoMib)
    expect((await post()).status).toBe(503)
    releaseLarge()
    await waitFor(async () => client.answer() !== '', 'the answer')
    expect((await post()).status).toBe(204)
    client.socket.destroy()
  })

  it('count what has arrived, not what is announced', async () => {
    const idle = Array.from({ length: 20 }, () => open('/v1/json', { ...JSON_TYPE, 'Content-Length': 2 * MIB }))
    await sleep(100)
    const answer = await exchange(
      app.url,
      head('POST', '/v1/json', { ...JSON_TYPE, 'Content-Length': 2 * MIB }),
      twoMib,
    )
    expect(answer.status).toBe(204)
    for (const { socket } of idle) socket.destroy()
  })

  it('count a compressed one by its largest possible size', async () => {
    const small = gzipSync(`{"a":"${'x'.repeat(1000)}"}`)
    const headers = { ...JSON_TYPE, 'Content-Encoding': 'gzip', 'Content-Length': small.length }
    const half = open('/v1/json', headers, small.subarray(0, 10))
    await sleep(100)
    expect((await exchange(app.url, head('POST', '/v1/json', headers), small)).status).toBe(503)
    half.socket.destroy()
    await waitFor(async () => {
      const { status } = await exchange(app.url, head('POST', '/v1/json', headers), small)
      return status === 204
    }, 'room for it')
  })
})

it('lets a sender read its answer that reads only when it has sent all, and then closes', async () => {
  const size = 8 * MIB
  const headers = { Connection: 'close', 'Content-Type': 'application/json', 'Content-Length': size }
  const client = open('/v1/json', headers)
  const errors: Error[] = []
  client.socket.on('error', (error) => errors.push(error))
  client.socket.pause()
  for (let sent = 0; sent < size; sent += MIB) {
    client.socket.write(Buffer.alloc(MIB, 32))
    await sleep(60)
  }
  client.socket.resume()
  await waitFor(async () => client.hasEnded(), 'the end of the connection')
  expect({ errors, answer: client.answer() }).toEqual({ errors: [], answer: expect.stringMatching(/^HTTP\/1.1 413 /) })
})

describe('a connection that is kept', () => {
  it('holds nothing of the requests that it has brought', async () => {
    const socket = Object.assign(new EventEmitter(), { destroySoon: () => void ended++, bytesRead: 0, end: () => {} })
    let ended = 0
    const wrapped = new Set<unknown>()
    for (let request = 0; request < 100; request++) {
      const req = Object.assign(new EventEmitter(), { socket, headers: { 'content-length': '2' }, complete: true })
      const ctx = { req, res: new EventEmitter(), state: {} } as unknown as Context
      await limitArrival()(ctx, async () => {})
      req.emit('close')
      wrapped.add(socket.destroySoon)
    }
    // A wrapper for each would hold all of them, and end the process when the connection is closed.
    expect(wrapped.size).toBe(1)
    socket.destroySoon()
    expect(ended).toBe(1)
  })
})
