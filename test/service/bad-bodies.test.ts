import { brotliCompressSync, gzipSync } from 'node:zlib'
import { fromSomewhere } from '../support/auth.ts'
import { call, createSession, expectError, type Json, textMessage } from '../support/http.ts'
import { exchange, head, type RawAnswer } from '../support/raw.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
let messages: string
beforeAll(async () => {
  api = await newOrganization()
  messages = `/v1/sessions/${await createSession(api)}/messages`
})

const MiB = 1024 * 1024
const json = { 'Content-Type': 'application/json' }
const asAnswer = ({ status, body }: RawAnswer) => ({ status, body: JSON.parse(body) as Json, headers: new Headers() })
const agentOf = (more: string) => `{"name":"n","system_prompt":"s",${more}}`

/** Sends a POST with a Content-Length as raw bytes. */
async function post(path: string, body: Uint8Array | string, headers: Record<string, string> = json) {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  return asAnswer(
    await exchange(api.url, head('POST', path, { ...api.headers, ...headers, 'Content-Length': bytes.length }), bytes),
  )
}

describe('a body', () => {
  it.each([
    ['cut off', '{"name":'],
    ['two values', '{} {}'],
    ['a bare word', 'hello'],
    ['single quotes', "{'name': 'x'}"],
    ['an empty string of blanks', '   '],
  ])('that is not JSON is refused: %s', async (_, body) => {
    expectError(await post('/v1/agents', body), 400, /^The request body/)
  })

  it.each(['null', '"text"', '1', 'true', '[]'])('that is not an object is refused: %s', async (body) => {
    for (const path of ['/v1/agents', '/v1/sessions', messages]) {
      expectError(await post(path, body), 400, /^The request body: must be an object, not /)
    }
  })

  it('is needed where the contract says so', async () => {
    expectError(await call(api, 'POST', '/v1/agents'), 400, 'A JSON request body is required')
    expectError(await call(api, 'POST', messages, '', json), 400, 'A JSON request body is required')
  })

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'nonsense', ''])(
    'of type "%s" is refused with 415',
    async (type) => {
      expectError(await post('/v1/agents', '{}', { 'Content-Type': type }), 415, 'Content-Type: application/json')
    },
  )

  it('is JSON in any spelling of the type', async () => {
    for (const type of ['application/json; charset=utf-8', 'APPLICATION/JSON', 'application/json;charset=UTF-8']) {
      expect((await post('/v1/sessions', '{}', { 'Content-Type': type })).status).toBe(201)
    }
  })

  it.each(['latin1', 'utf-16', 'iso-8859-1'])('in the charset %s is refused with 415', async (charset) => {
    const sentence = 'The charset must be utf-8'
    expectError(
      await post('/v1/agents', '{}', { 'Content-Type': `application/json; charset=${charset}` }),
      415,
      sentence,
    )
    const markdown = { 'Content-Type': `text/markdown; charset=${charset}` }
    expectError(await post('/v1/agents/import', 'Help.', markdown), 415, sentence)
  })

  it('without a Content-Type is refused with 415', async () => {
    expectError(await post('/v1/agents', '{}', {}), 415)
  })

  it('may come in chunks', async () => {
    const chunked = { ...api.headers, ...json, 'Transfer-Encoding': 'chunked' }
    const sent = JSON.stringify(textMessage('in chunks'))
    const chunks = [...sent].map((character) => `1\r\n${character}\r\n`).join('')
    const answer = asAnswer(await exchange(api.url, head('POST', messages, chunked), `${chunks}0\r\n\r\n`))
    expect(answer).toMatchObject({ status: 201, body: { content: [{ text: 'in chunks' }] } })
    const empty = asAnswer(await exchange(api.url, head('POST', '/v1/sessions', chunked), '0\r\n\r\n'))
    expect(empty.status).toBe(201)
  })

  it('may not come in a million chunks, nor in more compressed bytes than its limit', async () => {
    const chunked = { ...api.headers, ...json, 'Transfer-Encoding': 'chunked' }
    const sent = '1\r\nx\r\n'.repeat(20_000)
    expectError(asAnswer(await exchange(api.url, head('POST', messages, chunked), sent)), 400, /chunks of less than/)
    // Blocks of deflate that unpack to nothing.
    const blocks = Buffer.alloc(5 * 10_000, Buffer.from([0, 0, 0, 0xff, 0xff]))
    const packed = [gzipSync('').subarray(0, 10), ...Array(60).fill(blocks)]
    const pieces = packed.flatMap((bytes) => [`${bytes.length.toString(16)}\r\n`, bytes, '\r\n'])
    const gzip = { ...chunked, 'Content-Encoding': 'gzip' }
    expectError(asAnswer(await exchange(api.url, head('POST', messages, gzip), ...pieces)), 413)
  })

  it('may be compressed, and is refused if it does not match its encoding', async () => {
    const gzip = { ...json, 'Content-Encoding': 'gzip' }
    expect((await post('/v1/sessions', gzipSync('{"title":"small"}'), gzip)).body.title).toBe('small')
    expectError(await post('/v1/sessions', '{"title":"plain"}', gzip), 400)
    expectError(await post('/v1/sessions', '{}', { ...json, 'Content-Encoding': 'secret' }), 415)
    // A few bytes of Brotli take 16 MiB and more to unpack, whatever the limit.
    const brotli = brotliCompressSync('{}')
    expectError(await post('/v1/sessions', brotli, { ...json, 'Content-Encoding': 'br' }), 415, /gzip/)
  })

  it('that unpacks to more than the limit is refused with 413', async () => {
    const bomb = gzipSync(`{"title":"${'x'.repeat(8 * MiB)}"}`)
    expectError(await post('/v1/sessions', bomb, { ...json, 'Content-Encoding': 'gzip' }), 413)
  })
})

describe('a body over 2 MiB', () => {
  it('gets its 413 although it is sent to the end', async () => {
    const body = JSON.stringify(textMessage('x'.repeat(3 * MiB)))
    expectError(await post(messages, body), 413, 'at most 2097152 bytes')
  })

  it('gets its 413 in chunks too', async () => {
    const chunk = `100000\r\n${'x'.repeat(MiB)}\r\n`
    const start = head('POST', messages, { ...api.headers, ...json, 'Transfer-Encoding': 'chunked' })
    const answer = asAnswer(await exchange(api.url, start, chunk, chunk, chunk, '0\r\n\r\n'))
    expectError(answer, 413, 'at most 2097152 bytes')
  })

  it('leaves the connection usable for the next request, or closed', async () => {
    for (let round = 0; round < 3; round++) {
      expectError(await call(api, 'POST', messages, textMessage('x'.repeat(3 * MiB))), 413)
      expect((await call(api, 'GET', '/health')).status).toBe(200)
    }
  })

  it.each<[string, string, object, number]>([
    ['a session', '/v1/sessions', {}, 3 * MiB],
    ['an agent', '/v1/agents', { name: 'Large', system_prompt: 'Help.' }, 3 * MiB],
  ])('is taken for %s up to its limit, and not a byte more', async (_, path, fields, limit) => {
    const ofBytes = (bytes: number) => {
      const body = JSON.stringify({ ...fields, unknown: '' })
      return body.replace('"unknown":""', `"unknown":"${'x'.repeat(bytes - body.length)}"`)
    }
    expect((await post(path, ofBytes(limit))).status).toBe(201)
    expectError(await post(path, ofBytes(limit + 1)), 413, `at most ${limit} bytes`)
  })

  it('of garbage is refused like any other', async () => {
    const garbage = Buffer.alloc(3 * MiB, '\xff\xfe{"\x00\xc3(', 'latin1')
    expectError(await post(messages, garbage), 413)
    expectError(await post('/v1/agents', garbage), 400, /^The request body/)
    expectError(await post(messages, garbage, { 'Content-Type': 'text/plain' }), 415)
  })
})

describe('the parts of a body', () => {
  const gzip = { ...json, 'Content-Encoding': 'gzip' }
  const sentence = 'The request body has more than 50000 values and keys'

  it.each([
    ['a wide array', `{"x":[0${',0'.repeat(50_000)}]}`],
    ['an array that never ends', `[0${',0'.repeat(50_000)}`],
    ['empty arrays', `[${'[],'.repeat(25_000)}[]]`],
    ['keys', `{"x":0${',"k":0'.repeat(25_000)}}`],
    ['keys after a long string with quotes', `{"x":"${'\\"'.repeat(50_000)}"${',"k":0'.repeat(25_000)}}`],
  ])('are counted: %s', async (_, body) => {
    expectError(await post('/v1/agents', body), 400, sentence)
    expectError(await post('/v1/sessions', gzipSync(body), gzip), 400, sentence)
    const results = messages.replace('messages', 'tool-results')
    expectError(await post(results, body), 400, sentence)
  })

  it('are only those outside of strings', async () => {
    const title = ',:[{'.repeat(20_000)
    const { status } = await post('/v1/sessions', JSON.stringify({ title: 'short', unknown: title }))
    expect(status).toBe(201)
  })

  it('may be 50,000', async () => {
    const zeros = `0${',0'.repeat(49_000)}`
    expect((await post('/v1/sessions', `{"unknown":[${zeros}]}`)).status).toBe(201)
  })
})

describe('a body about signing in', () => {
  it('has at most 16 KiB, unpacked too', async () => {
    const body = `[${'0,'.repeat(20_000)}0]`
    for (const path of ['/v1/auth/login', '/v1/auth/register', '/v1/auth/refresh', '/v1/auth/api-keys']) {
      const headers = { ...json, ...fromSomewhere() }
      expectError(await post(path, body, headers), 413, 'at most 16384 bytes')
      expectError(await post(path, gzipSync(body), { ...headers, 'Content-Encoding': 'gzip' }), 413)
    }
  })
})

describe('the key __proto__ in a body', () => {
  it.each([
    ['at the top', '"__proto__":{"x":1}', /^The request body: must not have the key __proto__/],
    ['inside', '"x":[{"__proto__":1}]', /^x\.0: must not have the key __proto__/],
    ['with escapes', '"x":{"__\\u0070roto__":1}', /^x: must not have the key __proto__/],
  ])('is refused by name: %s', async (_, field, sentence) => {
    expectError(await post('/v1/agents', agentOf(field)), 400, sentence)
  })

  it('may be a value', async () => {
    expect((await post('/v1/agents', agentOf('"description":"__proto__"'))).status).toBe(201)
  })
})

describe('text in a body', () => {
  it.each([
    ['a NUL', '"description":"a\\u0000b"', /^description: must not contain a NUL/],
    ['a high surrogate', '"description":"a\\ud83d"', /^description: must be well-formed Unicode/],
    ['a low surrogate', '"description":"\\udd89a"', /^description: must be well-formed Unicode/],
    ['a NUL in a list', '"tags":["ok","\\u0000"]', /^tags\.1: must not contain a NUL/],
    ['a NUL in a field nobody knows', '"x":{"y":"\\u0000"}', /^x\.y: must not contain a NUL/],
    ['a NUL in a key', '"x":{"\\u0000":1}', /^x: must not contain a NUL/],
    ['a surrogate in a key', '"\\ud800":1', /^The request body: must be well-formed/],
  ])('with %s is refused', async (_, field, sentence) => {
    expectError(await post('/v1/agents', agentOf(field)), 400, sentence)
  })

  it('with broken UTF-8 is refused', async () => {
    const broken = Buffer.from(agentOf('"description":"a\xff"'), 'latin1')
    expectError(await post('/v1/agents', broken), 400, 'The request body is not valid UTF-8')
  })

  it('of every Unicode plane is kept', async () => {
    const description = 'ä\u2028\u0001\u007f\ufffd\uffff🦉\u{10ffff}'
    const { body } = await call(api, 'POST', '/v1/agents', { name: 'n', system_prompt: '', description })
    expect(body.description).toBe(description)
  })
})

describe('a number in a body', () => {
  it.each([
    ['with a large exponent', '"x":[{"y":1e400}]', /^x\.0\.y: must be a number of at most 1\.8e308/],
    ['in a list', '"x":[1,-1E+0309]', /^x\.1: must be a number/],
    ['with many digits', `"x":${'9'.repeat(250)}e99`, /^x: must be a number/],
  ])('beyond the largest is refused and does not become null: %s', async (_, field, sentence) => {
    expectError(await post('/v1/agents', agentOf(field)), 400, sentence)
  })
})

describe('nesting in a body', () => {
  const nested = (depth: number) => agentOf(`"x":${'['.repeat(depth)}${']'.repeat(depth)}`)

  it('is taken 60 deep and refused 100 deep', async () => {
    expect((await post('/v1/agents', nested(60))).status).toBe(201)
    expectError(await post('/v1/agents', nested(100)), 400, /nested more than 64 levels/)
  })

  it('is refused however deep it is', async () => {
    expectError(await post('/v1/agents', nested(MiB)), 400, /^The request body/)
  })
})

describe('unusual values in a body', () => {
  it('never break the service', async () => {
    const metadata = '{"constructor":1,"hasOwnProperty":{"$type":"Raw","value":1},"big":1e308,"n":-0,"toString":null}'
    const answer = await post(messages, `{"message":{"content":[{"type":"text","text":"x"}]},"metadata":${metadata}}`)
    expect(answer).toMatchObject({
      status: 201,
      body: { metadata: { constructor: 1, hasOwnProperty: { $type: 'Raw' } } },
    })
    const parameters = '{"$type":"Json","value":"1","toJSON":null,"prisma__type":"x","n":null}'
    const tool = `"tools":[{"type":"client_side","name":"t","description":"","parameters":${parameters}}]`
    const agent = await post('/v1/agents', agentOf(tool))
    expect(agent).toMatchObject({ status: 201, body: { tools: [{ parameters: JSON.parse(parameters) }] } })
    expect((await call(api, 'GET', `/v1/agents/${agent.body.id}`)).body).toEqual(agent.body)
  })
})
