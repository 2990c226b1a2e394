import assert from 'node:assert/strict'
import { request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import fc from 'fast-check'
import { z } from 'zod'
import { MAX_PARTS } from '../../../../api/http/body.ts'
import { reply } from '../../../../api/http/handle.ts'
import { MAX_DEPTH } from '../../../../api/http/text.ts'
import { defineEndpoint, type PlantedApp, plant } from '../../../support/planted.ts'
import type { Outcome, Parser } from '../parser.ts'

const MAX_FILE_BYTES = 100_000
const base = { method: 'POST', tag: 'files', access: 'member', summary: 'Planted' } as const
const form = defineEndpoint({
  ...base,
  operationId: 'form',
  path: '/form',
  multipart: {
    file: { field: 'file', maxBytes: MAX_FILE_BYTES },
    fields: z.object({ title: z.string().max(50).optional(), tag: z.string().optional() }),
  },
  responses: { 201: z.object({ fields: z.unknown(), name: z.string().nullish(), file: z.string() }) },
})
const json = defineEndpoint({
  ...base,
  operationId: 'json',
  path: '/json',
  body: z.unknown(),
  responses: { 201: z.object({ value: z.unknown() }) },
})

let app: Promise<PlantedApp> | undefined

/** Serves both endpoints by the service's HTTP layer. */
const start = () =>
  plant(
    (handle) => {
      handle(form, async ({ body }) => {
        const chunks: Uint8Array[] = []
        for await (const chunk of body.file.chunks) chunks.push(chunk)
        const { name } = body.file
        return reply(201, { fields: body.fields, name, file: Buffer.concat(chunks).toString('base64') })
      })
      handle(json, async ({ body }) => reply(201, { value: body }))
    },
    { authenticate: async () => ({ actor: { organizationId: 'o' } as never, credential: undefined }) },
  )

async function stop(): Promise<void> {
  const running = app
  app = undefined
  await (await running)?.close()
}

/** Sends a body. Returns the answer if it is accepted, undefined if it is refused in a bounded sentence. */
async function send(path: string, type: string, body: Buffer): Promise<Record<string, unknown> | undefined> {
  app ??= start()
  const { url, logged } = await app
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>()
  const headers = { 'content-type': type, 'content-length': body.length }
  const sent = request(`${url}${path}`, { method: 'POST', headers, agent: false }, async (response) => {
    const bytes = await buffer(response)
    resolve({ status: response.statusCode ?? 0, text: bytes.toString() })
  })
  sent.on('error', reject).end(body)
  const { status, text } = await promise
  const answer = JSON.parse(text)
  if (status === 201) return answer
  assert([400, 413, 415].includes(status), `${status} ${text.slice(0, 500)} ${logged.at(-1)?.slice(0, 2000)}`)
  assert(typeof answer.error === 'string' && answer.error.length < 2000 && answer.error.isWellFormed())
  return undefined
}

const BOUNDARY = 'xYz'
const TYPE = `multipart/form-data; boundary=${BOUNDARY}`
type Part = { head: string; body: string }
const formOf = (parts: Part[]): string =>
  `${parts.map(({ head, body }) => `--${BOUNDARY}\r\n${head}\r\n\r\n${body}\r\n`).join('')}--${BOUNDARY}--\r\n`
const DISPOSITION = 'Content-Disposition: form-data; name='
const FILE = `${DISPOSITION}"file"; filename="a.txt"\r\nContent-Type: text/plain`
const drawnPart: fc.Arbitrary<Part> = fc.record({
  head: fc.constantFrom(
    FILE,
    `${DISPOSITION}"title"`,
    `${DISPOSITION}"tag"`,
    `${DISPOSITION}file; filename*=UTF-8''%e2%82%ac`,
    `${DISPOSITION}"other"`,
    `content-disposition: FORM-DATA; name="title"\r\nX: y`,
    'Content-Type: text/plain',
  ),
  body: fc.oneof(fc.string({ maxLength: 30 }), fc.constantFrom('', '\r\n', `\r\n--${BOUNDARY}`, '--', '\r\n--')),
})

const multipart: Parser = {
  name: 'multipart',
  seeds: () =>
    [
      formOf([{ head: FILE, body: 'hello' }]),
      formOf([
        { head: `${DISPOSITION}"title"`, body: 'ü' },
        { head: FILE, body: 'a\r\nb' },
      ]),
    ].map((text) => Buffer.from(text)),
  words: [
    `--${BOUNDARY}`,
    `--${BOUNDARY}--`,
    '\r\n',
    '\r\n\r\n',
    'name="',
    'filename="',
    "filename*=UTF-8''%",
    '; ',
    '"',
    '\\"',
    'charset=utf-7',
    'Content-Transfer-Encoding: base64\r\n',
  ],
  drawn: fc.array(drawnPart, { minLength: 1, maxLength: 4 }).map(formOf),
  cost: 3,
  check: async (input) => {
    const answer = await send('/form', TYPE, input)
    if (answer === undefined) return 'refused'
    const form = await new Response(new Uint8Array(input), { headers: { 'content-type': TYPE } })
      .formData()
      .catch(() => undefined)
    const file = form?.get('file')
    // The reference refuses some forms. A file without a name is a text to it.
    if (!(file instanceof Blob)) return 'accepted'
    assert.equal(answer.file, Buffer.from(await file.arrayBuffer()).toString('base64'))
    for (const [name, value] of Object.entries(answer.fields as object)) assert(form?.getAll(name).includes(value))
    return 'accepted'
  },
  close: stop,
}

/** Tells whether the service takes a JSON value, as simply as can be. */
function isTaken(text: string): boolean {
  let parts = 0
  const isGood = (value: unknown, depth: number): boolean => {
    if (typeof value === 'string') return !value.includes('\0') && value.isWellFormed()
    if (typeof value === 'number') return Number.isFinite(value)
    if (typeof value !== 'object' || value === null) return true
    if (depth > MAX_DEPTH) return false
    const entries = Object.entries(value)
    parts += entries.length
    return entries.every(([name, inner]) => name !== '__proto__' && isGood(name, depth) && isGood(inner, depth + 1))
  }
  const value: unknown = JSON.parse(text)
  return isGood(value, 1) && parts < MAX_PARTS / 3
}

function readByReference(input: Buffer): { text: string; isTaken: boolean } | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(input)
    return { text, isTaken: isTaken(text) }
  } catch {
    return undefined
  }
}

const jsonBody: Parser = {
  name: 'json-body',
  seeds: () =>
    [
      '{"a": [1, 2.5e3, "b\\u00e9\\n", null, true, {"c": {}}]}',
      '[[[[[[]]]]]]',
      '"text"',
      `${'['.repeat(MAX_DEPTH)}${']'.repeat(MAX_DEPTH)}`,
      '\ufeff{}',
    ].map((text) => Buffer.from(text)),
  words: [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\\',
    '\\u0000',
    '\\ud800',
    '"__proto__":',
    '1e400',
    '-0',
    '\ufeff',
    '\xff',
    '{"a":',
  ],
  drawn: fc.json({ stringUnit: 'binary' }),
  cost: 2,
  check: async (input): Promise<Outcome> => {
    const answer = await send('/json', 'application/json', input)
    const reference = readByReference(input)
    if (answer === undefined) {
      assert(reference?.isTaken !== true || Object.keys(reference.text).length > 100_000, 'refused without a reason')
      return 'refused'
    }
    assert(reference !== undefined, 'accepted though it is not JSON')
    assert(reference.isTaken || reference.text.length > 10_000, 'accepted though it should be refused')
    // A round trip makes 0 of -0.
    assert.deepEqual(answer, JSON.parse(JSON.stringify({ value: JSON.parse(reference.text) })))
    return 'accepted'
  },
  close: stop,
}

export const REQUESTS: Parser[] = [multipart, jsonBody]
