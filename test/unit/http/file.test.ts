import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { ServedFile } from '../../../api/http/file.ts'
import { reply } from '../../../api/http/handle.ts'
import { fileResponses } from '../../../contract/kit/endpoint.ts'
import { notFound } from '../../../domain/kit/errors.ts'
import { waitFor } from '../../support/http.ts'
import { defineEndpoint, type PlantedApp, plant } from '../../support/planted.ts'
import { exchange, head } from '../../support/raw.ts'

const endpoint = defineEndpoint({
  operationId: 'planted',
  method: 'GET',
  path: '/v1/files/{name}',
  tag: 'files',
  access: 'public',
  summary: 'Planted',
  params: z.object({ name: z.string() }),
  responses: fileResponses('text/*', 'A file'),
})

const BYTES = Buffer.from('0123456789'.repeat(10))
const reads: [number, number][] = []

/** Splits bytes into chunks of seven. */
async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 7) yield bytes.subarray(at, at + 7)
}

const file: ServedFile = {
  contentType: 'text/plain; charset=utf-8',
  sizeBytes: BYTES.length,
  etag: 'v1',
  name: 'Notes "one" 日本.txt',
  read(start, end) {
    reads.push([start, end])
    return chunksOf(BYTES.subarray(start, end))
  },
}

async function* failingAfter(bytes: number): AsyncGenerator<Uint8Array> {
  if (bytes > 0) yield BYTES.subarray(0, bytes)
  throw new Error('the store is away')
}

const endless = { taken: 0, hasEnded: false }
async function* chunksWithoutEnd(): AsyncGenerator<Uint8Array> {
  try {
    for (; ; endless.taken++) {
      yield Buffer.alloc(128 * 1024)
      await sleep(1)
    }
  } finally {
    endless.hasEnded = true
  }
}

const files: Record<string, () => ServedFile> = {
  whole: () => file,
  empty: () => ({ ...file, sizeBytes: 0 }),
  buffer: () => ({
    ...file,
    name: undefined as never,
    disposition: 'inline',
    read: (from, to) => [BYTES.subarray(from, to)],
  }),
  failsAtFirst: () => ({ ...file, read: () => failingAfter(0) }),
  failsLater: () => ({ ...file, read: () => failingAfter(50) }),
  tooShort: () => ({ ...file, read: () => chunksOf(BYTES.subarray(0, 90)) }),
  tooLong: () => ({ ...file, sizeBytes: 50, read: () => chunksOf(BYTES) }),
  isGone: () => ({
    ...file,
    read: () => {
      throw notFound('File')
    },
  }),
  large: () => ({ ...file, sizeBytes: 1e12, read: chunksWithoutEnd }),
  image: () => ({ ...file, contentType: 'image/png' }),
}

let app: PlantedApp
beforeAll(async () => {
  app = await plant((handle) =>
    handle(endpoint, async ({ params }) => {
      const made = files[params.name]
      if (made === undefined) throw notFound('File')
      return reply(200, made(), { 'Cache-Control': 'private, max-age=60' })
    }),
  )
})
afterAll(() => app.close())

const get = (name: string, headers: Record<string, string> = {}) =>
  exchange(app.url, head('GET', `/v1/files/${name}`, headers))

describe('a file', () => {
  it('is answered whole, with the headers that a client needs to cache it', async () => {
    const { status, headers, body } = await get('whole')
    expect([status, body]).toEqual([200, BYTES.toString()])
    expect(headers).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'content-length': '100',
      'content-disposition': `attachment; filename="Notes \\"one\\" ??.txt"; filename*=UTF-8''Notes%20%22one%22%20%E6%97%A5%E6%9C%AC.txt`,
      'x-content-type-options': 'nosniff',
      'accept-ranges': 'bytes',
      etag: '"v1"',
      'cache-control': 'private, max-age=60',
    })
  })

  it('may be shown in the browser, be one buffer, or be empty', async () => {
    const shown = await get('buffer')
    expect([shown.status, shown.body, shown.headers['content-disposition']]).toEqual([200, BYTES.toString(), 'inline'])
    const empty = await get('empty')
    expect([empty.status, empty.body, empty.headers['content-length']]).toEqual([200, '', '0'])
  })

  it('has a HEAD, which reads nothing', async () => {
    reads.length = 0
    const answer = await exchange(app.url, head('HEAD', '/v1/files/whole', { Range: 'bytes=0-1' }))
    expect([answer.status, answer.body, answer.headers['content-length']]).toEqual([200, '', '100'])
    expect(reads).toEqual([])
  })

  it.each([
    ['"v1"', 304],
    ['W/"v1"', 304],
    ['"v0", "v1"', 304],
    ['*', 304],
    ['"v0"', 200],
    ['v1', 200],
  ])('is not sent again to a client that has it: If-None-Match: %s', async (version, status) => {
    reads.length = 0
    const answer = await get('whole', { 'If-None-Match': version })
    expect([answer.status, answer.headers.etag]).toEqual([status, '"v1"'])
    expect(answer.body).toBe(status === 304 ? '' : BYTES.toString())
    expect(reads).toHaveLength(status === 304 ? 0 : 1)
    if (status === 304) expect(answer.headers).not.toHaveProperty('content-length')
    expect(answer.headers['cache-control']).toBe('private, max-age=60')
  })

  it('is not sent again to a client that has it and uses fetch, which always asks for no cached answer', async () => {
    const headers = { 'If-None-Match': '"v1"', 'Cache-Control': 'no-cache', Pragma: 'no-cache' }
    expect((await get('whole', headers)).status).toBe(304)
  })

  it.each([
    ['bytes=0-9', 0, 10],
    ['bytes=95-', 95, 100],
    ['bytes=-5', 95, 100],
    ['bytes=-500', 0, 100],
    ['bytes=98-500', 98, 100],
    ['bytes=7-7', 7, 8],
    ['bytes=0-', 0, 100],
  ])('is answered in part, reading only that part: %s', async (range, start, end) => {
    reads.length = 0
    const { status, headers, body } = await get('whole', { Range: range })
    expect([status, body]).toEqual([206, BYTES.toString().slice(start, end)])
    expect(headers).toMatchObject({
      'content-range': `bytes ${start}-${end - 1}/100`,
      'content-length': `${end - start}`,
      'accept-ranges': 'bytes',
      etag: '"v1"',
    })
    expect(reads).toEqual([[start, end]])
  })

  it.each(['bytes=100-', 'bytes=200-300', 'bytes=-0'])('has no such part: %s', async (range) => {
    const { status, headers, body } = await get('whole', { Range: range })
    expect([status, headers['content-range']]).toEqual([416, 'bytes */100'])
    const error = 'Range: must begin within the file, which has 100 bytes'
    expect(JSON.parse(body)).toEqual({ error, code: 'no_such_range', field: 'Range' })
    expect(headers).not.toHaveProperty('content-disposition')
    expect((await get('empty', { Range: 'bytes=0-' })).status).toBe(416)
  })

  it('is not sent again in part either', async () => {
    reads.length = 0
    const { status } = await get('whole', { Range: 'bytes=500-', 'If-None-Match': '"v1"' })
    expect([status, reads]).toEqual([304, []])
  })

  it.each(['bytes=0-1,5-6', 'bytes=', 'bytes=a-b', 'bytes=5-1', 'lines=0-1', 'bytes 0-1', 'nonsense'])(
    'is answered whole where several parts are asked for, or none that is understood: %s',
    async (range) => {
      const { status, body } = await get('whole', { Range: range })
      expect([status, body]).toEqual([200, BYTES.toString()])
    },
  )

  it.each([
    ['"v1"', 206],
    ['"v0"', 200],
    ['W/"v1"', 200],
    ['Sun, 22 Nov 2026 08:00:00 GMT', 200],
  ])('is answered in part only if the client has the same version: If-Range: %s', async (version, status) => {
    expect((await get('whole', { Range: 'bytes=0-1', 'If-Range': version })).status).toBe(status)
  })
})

describe('a file that cannot be read', () => {
  it('at first is an error like any other', async () => {
    expect(await get('failsAtFirst')).toMatchObject({
      status: 500,
      body: '{"error":"Internal server error","code":"internal"}',
    })
    const gone = await get('isGone')
    expect([gone.status, gone.body]).toEqual([404, '{"error":"File not found","code":"not_found"}'])
    for (const header of ['etag', 'content-disposition', 'accept-ranges', 'cache-control']) {
      expect(gone.headers).not.toHaveProperty(header)
    }
  })

  it.each(['failsLater', 'tooShort', 'tooLong'])('later breaks the connection off: %s', async (name) => {
    app.logged.length = 0
    await expect(fetch(`${app.url}/v1/files/${name}`).then((answer) => answer.text())).rejects.toThrow()
    expect(app.logged).toEqual([expect.stringContaining('file broken off')])
  })

  it('is of a type that its endpoint does not declare', async () => {
    expect(await get('image')).toMatchObject({ status: 500, body: expect.stringContaining('image/png') })
  })
})

it('a client that stops reading holds only what is buffered, and its disconnect ends the reading', async () => {
  const socket = connect(Number(new URL(app.url).port), '127.0.0.1')
  socket.write('GET /v1/files/large HTTP/1.1\r\nHost: test\r\n\r\n')
  await waitFor(async () => endless.taken > 0, 'the file to begin')
  let last = -1
  // After a while the operating system's buffers are full.
  await waitFor(async () => {
    await sleep(200)
    const isStill = endless.taken === last
    last = endless.taken
    return isStill
  }, 'the file to halt')
  expect(last * 128 * 1024).toBeLessThan(32 * 1024 * 1024)
  expect(endless.hasEnded).toBe(false)
  socket.destroy()
  await waitFor(async () => endless.hasEnded, 'the file to end')
})
