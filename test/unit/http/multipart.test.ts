import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { reply } from '../../../api/http/handle.ts'
import type { Upload } from '../../../api/http/multipart.ts'
import { openapiDocument } from '../../../api/http/openapi.ts'
import { notFound, unauthenticated } from '../../../domain/kit/errors.ts'
import { waitFor } from '../../support/http.ts'
import { defineEndpoint, type PlantedApp, plant } from '../../support/planted.ts'
import { exchange, head } from '../../support/raw.ts'
import { send } from '../../support/walk.ts'

const MAX_BYTES = 5 * 1024 * 1024
const MIB = 1024 * 1024
const Received = z.object({
  fields: z.unknown().optional(),
  name: z.string().nullish(),
  type: z.string(),
  size: z.int(),
  digest: z.string(),
})
const base = {
  operationId: 'planted',
  method: 'POST',
  tag: 'files',
  access: 'member',
  summary: 'Planted',
  responses: { 201: Received },
} as const
const fields = z.object({
  title: z.string().max(5, { error: 'must have at most 5 characters' }),
  tag: z.string().optional(),
})
const upload = defineEndpoint({
  ...base,
  path: '/v1/uploads',
  multipart: { file: { field: 'file', maxBytes: MAX_BYTES }, fields },
  creates: true,
})
const bare = defineEndpoint({ ...base, path: '/v1/bare', multipart: { file: { field: 'file', maxBytes: MAX_BYTES } } })
const inMemory = defineEndpoint({
  ...base,
  path: '/v1/in-memory',
  multipart: { file: { field: 'file', maxBytes: MAX_BYTES, inMemory: true } },
})
const unread = defineEndpoint({ ...bare, path: '/v1/unread' })
const halfRead = defineEndpoint({ ...bare, path: '/v1/half-read' })
const slow = defineEndpoint({ ...bare, path: '/v1/slow' })

const actor = { organizationId: 'o' } as never
const requests: unknown[] = []
const gate = { open: Promise.withResolvers<void>(), handled: Promise.withResolvers<void>(), taken: 0, read: 0 }
const failed: unknown[] = []
const access = { ends: Number.POSITIVE_INFINITY }

async function readAll({ fields: given, file }: Upload) {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of file.chunks) {
    hash.update(chunk)
    size += chunk.length
  }
  return { fields: given, name: file.name, type: file.contentType, size, digest: hash.digest('hex') }
}

let app: PlantedApp
beforeAll(async () => {
  app = await plant(
    (handle) => {
      handle(upload, async ({ body, once }) => {
        const received = await readAll(body)
        return reply(201, await once(async () => received))
      })
      handle(bare, async ({ body }) => reply(201, await readAll(body).catch(keep)))
      handle(inMemory, async ({ body }) => {
        const received = await readAll(body)
        gate.read++
        await gate.handled.promise
        return reply(201, received)
      })
      handle(unread, async () => {
        throw notFound('Folder')
      })
      handle(halfRead, async ({ body }) => {
        for await (const _ of body.file.chunks) throw notFound('Folder')
        throw new Error('there was no chunk')
      })
      handle(slow, async ({ body }) => {
        for await (const chunk of body.file.chunks) {
          gate.taken += chunk.length
          await gate.open.promise
        }
        return reply(201, { fields: {}, type: '', size: gate.taken, digest: '' })
      })
    },
    {
      authenticate: async () => {
        if (Date.now() > access.ends) throw unauthenticated('Authentication required')
        return { actor, credential: undefined }
      },
      runOnce: (_actor, request, create) => {
        requests.push(request)
        return create({})
      },
      // An owner has a quarter of three quarters of it.
      bodyMemoryBytes: (6 * MIB * 16) / 3,
      arrival: { lingerMs: 300 },
    },
  )
})
afterAll(() => app.close())

function keep(error: unknown): never {
  failed.push(error)
  throw error
}

/** Builds a form. A File becomes a file, anything else a field. */
function formOf(...parts: [string, string | File][]): FormData {
  const form = new FormData()
  for (const [name, value] of parts) form.append(name, value)
  return form
}

const fileOf = (bytes: Uint8Array<ArrayBuffer> | string, name = 'a.txt', type = 'text/plain') =>
  new File([bytes], name, { type })
const digestOf = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex')
const randomBytes = (length: number) => crypto.getRandomValues(new Uint8Array(Math.min(length, 65536)))
const large = (length: number) => Buffer.concat(Array(Math.ceil(length / 65536)).fill(randomBytes(65536)), length)

async function post(path: string, form: FormData, headers: Record<string, string> = {}) {
  const { status, body } = await send(app.url, { method: 'POST', path, body: form, headers })
  return { status, body: JSON.parse(Buffer.from(body, 'latin1').toString()) }
}

const BOUNDARY = 'b'
const TYPE = `multipart/form-data; boundary=${BOUNDARY}`
const part = (disposition: string, content: string, more = '') =>
  `--${BOUNDARY}\r\nContent-Disposition: form-data; ${disposition}\r\n${more}\r\n${content}\r\n`
const FILE = part('name="file"; filename="a"', 'abc')
const END = `--${BOUNDARY}--\r\n`

async function postRaw(path: string, body: string, type = TYPE) {
  const headers = { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) }
  const answer = await exchange(app.url, head('POST', path, headers), body)
  return { status: answer.status, body: answer.body === '' ? undefined : JSON.parse(answer.body) }
}

describe('an upload', () => {
  it.each([0, 1, 65_535, 65_536, 1_000_003, MAX_BYTES])(
    'comes as it was sent, with its fields: %i bytes',
    async (size) => {
      const bytes = large(size)
      const answer = await post('/v1/uploads', formOf(['title', 'ä €'], ['tag', 'x'], ['file', fileOf(bytes)]))
      expect(answer).toEqual({
        status: 201,
        body: { fields: { title: 'ä €', tag: 'x' }, name: 'a.txt', type: 'text/plain', size, digest: digestOf(bytes) },
      })
    },
  )

  it.each([
    ['ä€ 日本.txt', 'ä€ 日本.txt'],
    ['../../etc/passwd', 'passwd'],
    ['C:\\temp\\a.txt', 'a.txt'],
    ['..', undefined],
  ])('has a name without folders: %s', async (name, expected) => {
    const { status, body } = await post('/v1/bare', formOf(['file', fileOf('a', name)]))
    expect([status, body.name ?? undefined]).toEqual([201, expected])
  })

  it('needs no name, and its unknown fields are ignored wherever they are', async () => {
    const body = part('name="more"', 'x') + part('name="file"', 'abc') + part('name="more"', 'y') + END
    const answer = await postRaw('/v1/bare', body)
    expect([answer.status, answer.body]).toEqual([201, expect.objectContaining({ size: 3 })])
  })

  it('may come byte by byte, and in chunks', async () => {
    const body = part('name="title"', 'abc') + FILE + END
    const chunks = [...body].map((byte) => `1\r\n${byte}\r\n`)
    const headers = { 'Content-Type': TYPE, 'Transfer-Encoding': 'chunked' }
    const answer = await exchange(app.url, head('POST', '/v1/uploads', headers), ...chunks, '0\r\n\r\n')
    expect(JSON.parse(answer.body)).toMatchObject({ fields: { title: 'abc' }, size: 3 })
  })

  it('is the same request when its fields and its file are the same', async () => {
    requests.length = 0
    const key = { 'Idempotency-Key': 'k' }
    for (const [title, bytes] of [
      ['a', 'one'],
      ['a', 'one'],
      ['b', 'one'],
      ['a', 'two'],
    ] as const) {
      expect((await post('/v1/uploads', formOf(['title', title], ['file', fileOf(bytes)]), key)).status).toBe(201)
    }
    const [first, ...others] = requests.map((request) => JSON.stringify(request))
    expect(others.map((other) => other === first)).toEqual([true, false, false])
  })
})

describe('an upload that is read whole', () => {
  it('counts in the memory of bodies until it is handled', async () => {
    const form = () => formOf(['file', fileOf(large(4 * MIB))])
    const first = post('/v1/in-memory', form())
    await waitFor(async () => gate.read === 1, 'the first upload to be read')
    const busy = {
      status: 503,
      body: { error: expect.stringMatching(/too many large requests; nothing was done/), code: 'unavailable' },
    }
    expect(await post('/v1/in-memory', form())).toEqual(busy)
    expect((await post('/v1/bare', form())).status).toBe(201)
    gate.handled.resolve()
    expect((await first).status).toBe(201)
    expect((await post('/v1/in-memory', form())).status).toBe(201)
  })
})

describe('an upload that is wrong', () => {
  it.each([
    ['no file', part('name="title"', 'a') + END, /^file: is required$/],
    ['nothing at all', END, /^file: is required$/],
    [
      'a file in another field',
      part('name="image"; filename="a"', 'abc') + END,
      /^image: must not be a file; .* "file"$/,
    ],
    ['two files', part('name="title"', 'a') + FILE + FILE + END, /^file: must be given once$/],
    ['a field after the file', FILE + part('name="tag"', 'a') + END, /title: |^tag: must come before the file$/],
    [
      'a field twice',
      part('name="title"', 'a') + part('name="title"', 'b') + FILE + END,
      /^title: must be given once$/,
    ],
    ['a field that is too long', part('name="title"', 'abcdef') + FILE + END, /^title: must have at most 5/],
    ['a field that is missing', FILE + END, /^title: /],
    ['a field with NUL', part('name="title"', 'a\0') + FILE + END, /^title: must not contain a NUL/],
    ['no end', part('name="title"', 'a') + FILE, /^The multipart body is malformed/],
    ['no end of the file', part('name="title"', 'a') + FILE.slice(0, -5), /^The multipart body is malformed/],
    ['another boundary', part('name="title"', 'a').replaceAll('--b', '--c'), /malformed|missing/],
    ['no multipart', '{"a":1}', /malformed|missing/],
    ['nothing', '', /malformed|missing/],
    ['too many parts', part('name="more"', 'x').repeat(100) + FILE + END, /too many parts/],
    [
      'a name that is too long',
      part(`name="file"; filename="${'x'.repeat(2000)}"`, 'abc') + END,
      /^file: must have a file name of at most/,
    ],
    [
      'a name with NUL',
      part('name="title"', 'a') + part('name="file"; filename="a%00\0b"', 'abc') + END,
      /^file: must not contain a NUL/,
    ],
    [
      'a header that is too long',
      part('name="title"', 'a') + part('name="file"', 'a', `X: ${'x'.repeat(20_000)}\r\n`) + FILE + FILE + END,
      /once/,
    ],
  ])('is refused with the reason: %s', async (_, body, sentence) => {
    const answer = await postRaw('/v1/uploads', body)
    expect(answer).toMatchObject({ status: 400, body: { error: expect.stringMatching(sentence), code: 'invalid' } })
  })

  it.each([
    ['another type', 'application/json', 415, /multipart\/form-data/],
    ['no boundary', 'multipart/form-data', 400, /boundary/],
  ])('is refused for its type: %s', async (_, type, status, sentence) => {
    expect(await postRaw('/v1/uploads', FILE + END, type)).toMatchObject({
      status,
      body: { error: expect.stringMatching(sentence) },
    })
  })

  it('may not be compressed', async () => {
    const { status } = await exchange(
      app.url,
      head('POST', '/v1/bare', { 'Content-Type': TYPE, 'Content-Encoding': 'gzip', 'Content-Length': 1 }),
      'x',
    )
    expect(status).toBe(415)
  })
})

describe('an upload that is too large', () => {
  it('is 413 by a byte, and the handler gets the error', async () => {
    failed.length = 0
    const answer = await post('/v1/bare', formOf(['file', fileOf(large(MAX_BYTES + 1))]))
    expect(answer).toEqual({
      status: 413,
      body: { error: `file: must be at most ${MAX_BYTES} bytes`, code: 'too_large', field: 'file' },
    })
    expect(failed).toEqual([expect.objectContaining({ status: 413 })])
  })

  it('is 413 by its Content-Length, before anything has come', async () => {
    const headers = { 'Content-Type': TYPE, 'Content-Length': 10 * MAX_BYTES }
    expect((await exchange(app.url, head('POST', '/v1/bare', headers))).status).toBe(413)
  })

  it('is 413 by a field', async () => {
    const body = part('name="title"', 'x'.repeat(70_000)) + FILE + END
    expect(await postRaw('/v1/uploads', body)).toEqual({
      status: 413,
      body: { error: expect.stringMatching(/^title: must be at most/), code: 'too_large', field: 'title' },
    })
  })

  it.each([
    ['in its file', part('name="file"; filename="a"', '')],
    ['in what nobody asked for', part('name="more"', '')],
    ['before its first part', 'x'],
  ])('is answered while the client goes on sending, and its connection ends soon: %s', async (_, beginning) => {
    const socket = connect(Number(new URL(app.url).port), '127.0.0.1')
    let answer = ''
    let hasEnded = false
    socket.on('data', (data) => {
      answer += data
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      hasEnded = true
    })
    const headers = { 'Content-Type': TYPE, 'Transfer-Encoding': 'chunked', Connection: 'keep-alive' }
    socket.write(head('POST', '/v1/bare', headers))
    const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
    socket.write(chunk(beginning.slice(0, -2) || 'x'))
    for (let sent = 0; !hasEnded && sent < 1000; sent++) {
      socket.write(chunk('x'.repeat(64 * 1024)))
      await sleep(5)
    }
    await waitFor(async () => hasEnded, 'the connection to end')
    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
    expect(answer).toContain('must be at most')
  })
})

describe('the rest of an upload', () => {
  it.each(['/v1/unread', '/v1/half-read'])('is dropped once it is answered: %s', async (path) => {
    const answer = await post(path, formOf(['file', fileOf(large(4 * MIB))]))
    expect(answer).toEqual({ status: 404, body: { error: 'Folder not found', code: 'not_found' } })
    expect((await post('/v1/bare', formOf(['file', fileOf('a')]))).status).toBe(201)
  })

  it('waits with the client while the handler takes nothing', async () => {
    const socket = connect(Number(new URL(app.url).port), '127.0.0.1')
    const headers = { 'Content-Type': TYPE, 'Content-Length': MAX_BYTES }
    socket.write(head('POST', '/v1/slow', headers))
    socket.write(part('name="file"; filename="a"', '').slice(0, -2))
    socket.write(large(4 * MIB))
    await waitFor(async () => gate.taken > 0, 'the first chunk')
    await sleep(300)
    expect(gate.taken).toBeLessThan(MIB)
    gate.open.resolve()
    await waitFor(async () => gate.taken === 4 * MIB, 'the rest of them')
    socket.destroy()
  })

  it('that breaks off fails the reading', async () => {
    failed.length = 0
    const socket = connect(Number(new URL(app.url).port), '127.0.0.1')
    socket.write(head('POST', '/v1/bare', { 'Content-Type': TYPE, 'Content-Length': 1000 }))
    socket.write(FILE)
    await sleep(100)
    socket.destroy()
    await waitFor(async () => failed.length > 0, 'the reading to fail')
    expect(failed).toEqual([expect.objectContaining({ status: 400, message: 'The request broke off' })])
  })

  it('is refused if the credential has ended meanwhile', async () => {
    const body = FILE + END
    const headers = { 'Content-Type': TYPE, 'Content-Length': body.length, Connection: 'close' }
    access.ends = Date.now() + 500
    const socket = connect(Number(new URL(app.url).port), '127.0.0.1')
    let answer = ''
    socket.on('data', (data) => {
      answer += data
    })
    socket.write(head('POST', '/v1/bare', headers) + body.slice(0, -4))
    await sleep(2500)
    socket.write(body.slice(-4))
    await waitFor(async () => answer !== '', 'the answer')
    access.ends = Number.POSITIVE_INFINITY
    expect(answer).toMatch(/^HTTP\/1\.1 401 /)
    socket.destroy()
  })
})

it('the OpenAPI document describes a form with a file', () => {
  const document = openapiDocument([upload], { version: '1', prefix: '', isOpen: true })
  const operation = document.paths['/v1/uploads']?.post
  expect(operation).toMatchObject({ responses: { 408: {}, 413: {}, 415: {} } })
  expect(operation).toMatchObject({
    requestBody: {
      required: true,
      content: {
        'multipart/form-data': {
          schema: {
            type: 'object',
            properties: {
              title: { type: 'string' },
              tag: { type: 'string' },
              file: { type: 'string', format: 'binary' },
            },
            required: ['title', 'file'],
          },
        },
      },
    },
  })
})
