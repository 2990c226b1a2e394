import { type AddressInfo, createServer, type Server } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { readRetryAfter } from '../../../domain/models/llm/providers/call-failure.ts'
import { type FakeOpenai, type FakeOpenaiAnswer, startFakeOpenai } from '../../support/providers/chat-completions.ts'
import { UNTRUSTED } from '../../support/untrusted-certificate.ts'
import { ask, failureOf, userSays } from './ask.ts'
import { chatModel } from './provider-model.ts'

const API_KEY = 'sk-secret-0123456789'
const fakes: FakeOpenai[] = []

afterEach(async () => {
  await Promise.all(fakes.splice(0).map((fake) => fake.close()))
})

async function askFor(answer: FakeOpenaiAnswer, apiKey = API_KEY) {
  const fake = await startFakeOpenai([answer])
  fakes.push(fake)
  const model = chatModel({ baseUrl: fake.baseUrl, apiKey, model: 'gpt-test' })
  const asked = await ask(model, { messages: [userSays('Hi')] })
  return { fake, asked, failure: failureOf(asked) }
}

describe('a status other than 200', () => {
  it.each([
    [400, false],
    [401, false],
    [403, false],
    [404, false],
    [408, true],
    [409, true],
    [429, true],
    [500, true],
    [502, true],
    [503, true],
    [529, true],
  ])('%i is retryable: %s, and asked for only once', async (status, retryable) => {
    const { fake, failure } = await askFor({ status, message: 'it did not work' })
    expect(failure).toMatchObject({ status, retryable, message: `OpenAI answered ${status}: it did not work` })
    expect(failure.retryAfterMs).toBeUndefined()
    expect(fake.requests).toHaveLength(1)
  })

  it('says how long to wait', async () => {
    const { failure } = await askFor({ status: 429, message: 'slow down', headers: { 'retry-after': '7' } })
    expect(failure.retryAfterMs).toBe(7000)
  })

  it('is cut short, on one line, without the key and without credentials', async () => {
    const message = `key ${API_KEY}\nat https://me:pass@proxy.example/v1 ${'😀'.repeat(500)}`
    const { failure } = await askFor({ status: 401, message })
    expect(failure.message).toMatch(/^OpenAI answered 401: key \[key\] at https:\/\/proxy\.example\/v1 😀/)
    expect(Array.from(failure.message).length).toBeLessThan(330)
    expect(failure.message.isWellFormed()).toBe(true)
    // Loggers and Temporal write causes down. The SDK's error contains the key and the conversation.
    expect(failure.cause).toBeUndefined()
  })

  it.each<[string, object]>([
    ['error', { error: 'slow down' }],
    ['error.message', { error: { message: 'slow down' } }],
    ['message', { message: 'slow down' }],
    ['detail', { detail: 'slow down' }],
    ['a list of details', { detail: [{ msg: 'slow down' }] }],
  ])('gives the reason that its body has in %s', async (_field, body) => {
    const { failure } = await askFor({ status: 429, body: JSON.stringify(body) })
    expect(failure).toMatchObject({ retryable: true, message: 'OpenAI answered 429: slow down' })
  })

  it('gives the fields that are wrong in the words of FastAPI', async () => {
    const detail = [
      { type: 'missing', loc: ['body', 'messages', 0, 'role'], msg: 'Field required', input: {} },
      { type: 'int_parsing', loc: ['body', 'seed'], msg: 'Input should be a valid integer' },
    ]
    const { failure } = await askFor({ status: 422, body: JSON.stringify({ detail }) })
    expect(failure.message).toBe(
      'OpenAI answered 422: body.messages.0.role: Field required; body.seed: Input should be a valid integer',
    )
  })

  it('keeps words that contain a short key', async () => {
    const { failure } = await askFor({ status: 400, message: 'the maximum is exceeded' }, 'xi')
    expect(failure.message).toBe('OpenAI answered 400: the maximum is exceeded')
  })

  it.each(['', '<html>Bad gateway</html>'])('need not have a JSON body: %j', async (body) => {
    const { failure } = await askFor({ status: 502, body, headers: { 'content-type': 'text/html' } })
    expect(failure).toMatchObject({ status: 502, retryable: true, message: 'OpenAI answered 502: Bad Gateway' })
  })
})

describe('a 200 that is not an event stream', () => {
  it.each(['text/html; charset=utf-8', 'application/json'])(
    'of type %s is not retried, and names the base URL',
    async (type) => {
      const { fake, failure } = await askFor({ status: 200, body: '{}', headers: { 'content-type': type } })
      const [name] = type.split(';')
      expect(failure).toMatchObject({
        retryable: false,
        message: `OpenAI answered with ${name} and not with an event stream; is ${fake.baseUrl} its base URL?`,
      })
    },
  )
})

describe('an answer that breaks', () => {
  it('is retryable when the connection is torn down in the middle; the text before it arrived', async () => {
    const { asked, failure } = await askFor({ text: ['half '], pauseMs: 20, end: 'broken' })
    expect(asked.text).toBe('half ')
    expect(failure).toMatchObject({ status: undefined, retryable: true })
    expect(failure.message).toBe('The connection to OpenAI broke off.')
  })

  it.each<[string, FakeOpenaiAnswer]>([
    ['with text', { text: ['half '], end: 'cut_off' }],
    ['with nothing', { end: 'cut_off' }],
    ['with half of a tool call', { toolCalls: [{ id: 'c1', name: 'add', arguments: '{"a":' }], end: 'cut_off' }],
  ])('is retryable when it ends %s but without a finish', async (_content, answer) => {
    const { asked, failure } = await askFor(answer)
    expect(failure).toMatchObject({ status: undefined, retryable: true })
    expect(failure.message).toBe('OpenAI ended its answer before it was finished.')
    expect([asked.calls, asked.finish]).toEqual([[], undefined])
  })

  it.each([
    ['server_error', undefined, true],
    [429, 429, true],
    ['400', 400, false],
  ])('by an error object with the code %j in mid-stream', async (code, status, retryable) => {
    const error = { message: `the server had a problem with ${API_KEY}`, type: 'x', code }
    const { asked, failure } = await askFor({ text: ['half '], chunks: [{ error }] })
    expect(asked.text).toBe('half ')
    expect(failure).toMatchObject({ status, retryable })
    expect(failure.message).toBe('OpenAI broke off its answer: the server had a problem with [key]')
  })

  it('by an error object without a reason', async () => {
    const { failure } = await askFor({ text: ['half '], chunks: [{ error: { type: 'x' } }] })
    expect(failure).toMatchObject({ retryable: true, message: 'OpenAI broke off its answer.' })
  })

  it('by an error object of megabytes', async () => {
    const error = { message: `sk-${'a'.repeat(7_000_000)}` }
    const { failure } = await askFor({ text: ['half '], chunks: [{ error }] })
    expect(failure.message).toBe('OpenAI broke off its answer: [key]')
  })

  it('by an error object before the first text is the same as a status', async () => {
    const error = { message: 'too many requests', type: 'rate_limit_exceeded', code: 'rate_limit_exceeded' }
    const { failure } = await askFor({ chunks: [{ error }] })
    expect(failure).toMatchObject({ status: 429, retryable: true, message: 'OpenAI answered 429: too many requests' })
  })

  it.each(['{"choices": [', { choices: 'none' }])('is retryable when a chunk cannot be read: %j', async (chunk) => {
    const { failure } = await askFor({ text: ['half '], chunks: [chunk] })
    expect(failure).toMatchObject({ retryable: true, message: 'OpenAI sent an answer that cannot be read.' })
  })
})

/** Starts a server that does not speak HTTP over a plain connection. Returns its base URL. */
async function listen(server: Server, scheme: 'http' | 'https'): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  fakes.push({ baseUrl: '', requests: [], close: () => new Promise((resolve) => server.close(() => resolve())) })
  // The address of a TCP server is never a pipe name.
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

const hangUp = () => createServer((socket) => socket.on('error', () => {}).once('data', () => socket.resetAndDestroy()))
const plain = () => createServer((socket) => socket.on('error', () => {}).once('data', () => socket.end('hello')))
const untrusted = () => createTlsServer(UNTRUSTED)
const closedPort = async () => {
  const fake = await startFakeOpenai([])
  await fake.close()
  return fake.baseUrl
}

describe('a provider that cannot be reached', () => {
  it.each<[string, () => Promise<string>, string]>([
    ['refuses connections', closedPort, 'Acme refused the connection. Is its base URL right, and does it run?'],
    [
      'has a name that is not found',
      async () => 'http://no-such-host.invalid/v1',
      'The address of Acme was not found. Is its base URL right?',
    ],
    ['hangs up', () => listen(hangUp(), 'http'), 'The connection to Acme broke off.'],
    [
      'does not speak HTTP',
      () => listen(plain(), 'http'),
      'Acme sent an answer that is not HTTP. Is its base URL right?',
    ],
    ['does not speak TLS', () => listen(plain(), 'https'), 'No secure connection to Acme could be made.'],
    ['has an untrusted certificate', () => listen(untrusted(), 'https'), 'The certificate of Acme is not trusted.'],
    ['has a port that is not allowed', async () => 'http://127.0.0.1:1/v1', 'The connection to Acme failed.'],
  ])('because it %s fails in plain words', async (_fault, start, sentence) => {
    const model = chatModel({ baseUrl: await start(), apiKey: API_KEY, model: 'm', providerName: 'Acme' })
    const failure = failureOf(await ask(model, { messages: [userSays('Hi')] }))
    expect(failure).toMatchObject({ status: undefined, retryable: true, message: sentence })
    expect(failure.cause).toBeUndefined()
  })

  it('shows no credentials of its URL', async () => {
    const model = chatModel({ baseUrl: 'http://me:pass@127.0.0.1:1/v1', apiKey: API_KEY, model: 'm' })
    expect(failureOf(await ask(model, { messages: [userSays('Hi')] })).message).not.toMatch(/pass/)
  })

  it('is not retried for an invalid effort', async () => {
    const model = chatModel({ baseUrl: 'http://127.0.0.1:1/v1', apiKey: API_KEY, model: 'm' })
    const asked = await ask(model, { messages: [userSays('Hi')], reasoningEffort: 'enormous' })
    expect(failureOf(asked)).toMatchObject({ retryable: false, message: 'OpenAI does not know this reasoning effort.' })
  })
})

describe('a 200 with a malformed answer', () => {
  const stream = { 'content-type': 'text/event-stream' }
  const cutOff = 'OpenAI ended its answer before it was finished.'
  const unreadable = 'OpenAI sent an answer that cannot be read.'
  it.each<[string, string, Record<string, string>, string]>([
    ['nothing', '', stream, cutOff],
    ['nothing, of no type', '', { 'content-type': '' }, cutOff],
    ['a page under the type of a stream', '<html><body>Sign in</body></html>', stream, cutOff],
    ['a page under the type of text', '<html>Sign in</html>', { 'content-type': 'text/plain' }, cutOff],
    ['half of an event', 'data: {"choices": [', stream, cutOff],
    ['half of a chunk', 'data: {"choices": [\n\n', stream, unreadable],
    ['a page as data', 'data: <html></html>\n\n', stream, unreadable],
    ['chunks that are no objects', 'data: []\n\n', stream, unreadable],
    ['chunks without choices', 'data: {"type":"ping"}\n\n', stream, unreadable],
    ['a tool call without a name', 'data: {"choices":[{"delta":{"tool_calls":[{"id":"c"}]}}]}\n\n', stream, unreadable],
    ['data that is not compressed as declared', 'data: {}', { ...stream, 'content-encoding': 'gzip' }, unreadable],
  ])('such as %s is retryable, in plain words', async (_what, body, headers, sentence) => {
    const { failure } = await askFor({ status: 200, body, headers })
    expect(failure).toMatchObject({ status: undefined, retryable: true, message: sentence })
  })
})

describe('the time to wait', () => {
  it.each<[Record<string, string>, number | undefined]>([
    [{}, undefined],
    [{ 'retry-after': '2' }, 2000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after-ms': '150', 'retry-after': '2' }, 150],
    [{ 'retry-after-ms': 'soon', 'retry-after': '2' }, 2000],
    [{ 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' }, 0],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '-1' }, undefined],
  ])('of %j is %s ms', (headers, expectedMs) => {
    expect(readRetryAfter(headers)).toBe(expectedMs)
  })

  it('may be a date', () => {
    const waitMs = readRetryAfter({ 'retry-after': new Date(Date.now() + 60_000).toUTCString() })
    expect(waitMs).toBeGreaterThan(1000)
    expect(waitMs).toBeLessThanOrEqual(60_000)
  })
})
