import type { ModelSettings } from '../../../domain/models/llm/providers/create-model.ts'
import { ask, failureOf, requestOf, userSays } from './ask.ts'
import { type Answer, PROTOCOLS, useFakes } from './protocols.ts'
import { API_KEY, modelOf } from './provider-model.ts'

const { start } = useFakes()
const TYPES = PROTOCOLS.map(({ type }) => type)
const STREAM = { 'content-type': 'text/event-stream' }
const each = <Row extends unknown[]>(rows: Row[]): [ModelSettings['type'], ...Row][] =>
  TYPES.flatMap((type) => rows.map((row): [ModelSettings['type'], ...Row] => [type, ...row]))

async function askFor(type: ModelSettings['type'], answer: Answer, settings: Partial<ModelSettings> = {}) {
  const { fake, model } = await start(type, [answer], settings)
  const asked = await ask(model, { messages: [userSays('Hi')] })
  return { fake, asked, failure: failureOf(asked) }
}

describe('a status other than 200', () => {
  it.each(
    each<[number, boolean]>([
      [400, false],
      [401, false],
      [404, false],
      [429, true],
      [500, true],
      [529, true],
    ]),
  )('of %s: %i is retryable: %s, and asked for only once', async (type, status, retryable) => {
    const headers: Record<string, string> = status === 429 ? { 'retry-after': '7' } : {}
    const { fake, failure } = await askFor(type, { status, message: `no, ${API_KEY}`, headers })
    expect(failure).toMatchObject({ status, retryable, message: `Acme answered ${status}: no, [key]` })
    expect(failure.retryAfterMs).toBe(status === 429 ? 7000 : undefined)
    const { retryAfterMs } = failure
    const own = expect.stringMatching(`^Acme answered ${status}\\. The reason is left out`)
    expect(failure.inOwnWords()).toMatchObject({ status, retryable, retryAfterMs, message: own })
    expect(failure.cause).toBeUndefined()
    expect(fake.requests).toHaveLength(1)
  })

  it('of gemini says in its body how long to wait', async () => {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.5s' }]
    const body = JSON.stringify({ error: { code: 429, message: 'slow down', status: 'RESOURCE_EXHAUSTED', details } })
    const { failure } = await askFor('gemini', { status: 429, body })
    expect(failure).toMatchObject({ retryAfterMs: 34_500, message: 'Acme answered 429: slow down' })
  })

  it('may have its body in a list', async () => {
    const { failure } = await askFor('openai_completions', {
      status: 400,
      body: '[{"error": {"message": "no such key"}}]',
    })
    expect(failure.message).toBe('Acme answered 400: no such key')
  })

  it.each([
    'sk-ant-api03-0123456789abcdef',
    'sk-proj-0123456789abcdef',
    'AIzaSy0123456789abcdef',
    'AQ.Ab8_0123456789abcdef',
  ])('shows no key such as %s, even a foreign one', async (key) => {
    const { failure } = await askFor('gemini', {
      status: 400,
      message: `bad ${key} in https://x.test/?a=1&key=${key}&b`,
    })
    expect(failure.message).toBe('Acme answered 400: bad [key] in https://x.test/?a=1&key=[key]&b')
  })
})

describe('an answer that breaks', () => {
  it.each(
    each([
      ['broken', 'The connection to Acme broke off.'],
      ['cut_off', 'Acme ended its answer before it was finished.'],
    ] as ['broken' | 'cut_off', string][]),
  )('at %s (%s) is retryable; the text before it arrived', async (type, end, message) => {
    const { asked, failure } = await askFor(type, { text: ['half '], pauseMs: 5, end })
    expect(asked.text).toBe('half ')
    expect(failure).toMatchObject({ status: undefined, retryable: true, message })
  })

  it.each(TYPES)('at %s after a tool call has no call', async (type) => {
    const toolCalls = [{ id: 'c1', name: 'add', arguments: '{}' }]
    const { asked, failure } = await askFor(type, { toolCalls, end: 'cut_off' })
    expect(failure).toMatchObject({ retryable: true, message: 'Acme ended its answer before it was finished.' })
    expect([asked.calls, asked.finish]).toEqual([[], undefined])
  })

  it.each(PROTOCOLS)(
    'at $type by an error in mid-stream is retryable, and ends the request',
    async ({ type, overloaded }) => {
      const { fake, asked, failure } = await askFor(type, { text: ['half '], chunks: [overloaded], end: 'stalled' })
      expect(asked.text).toBe('half ')
      expect(failure).toMatchObject({ retryable: true, message: 'Acme broke off its answer: Overloaded' })
      expect(failure.status).toBe(type === 'anthropic' ? 529 : 503)
      expect(await fake.requests[0]?.closed).toBe('hung_up')
    },
  )

  it.each(PROTOCOLS)('at $type by an error at once is retryable', async ({ type, overloaded }) => {
    const { failure } = await askFor(type, {
      status: 200,
      headers: STREAM,
      body: `data: ${JSON.stringify(overloaded)}\n\n`,
    })
    expect(failure).toMatchObject({ retryable: true, status: type === 'anthropic' ? 529 : 503 })
    expect(failure.message).toMatch(/^Acme (answered 5\d\d|broke off its answer): Overloaded$/)
  })

  it.each(PROTOCOLS)('at $type by an error before any text ends the request', async ({ type, overloaded }) => {
    const { fake, failure } = await askFor(type, { chunks: [overloaded], end: 'stalled' })
    expect(failure).toMatchObject({ retryable: true, status: type === 'anthropic' ? 529 : 503 })
    expect(await fake.requests[0]?.closed).toBe('hung_up')
  })

  it('at openai by a failed response says why', async () => {
    const error = { code: 'server_error', message: 'it broke' }
    const failed = { type: 'response.failed', sequence_number: 9, response: { status: 'failed', error } }
    const { failure } = await askFor('openai', { text: ['half '], chunks: [failed] })
    expect(failure).toMatchObject({ retryable: true, message: 'Acme broke off its answer: it broke' })
  })

  it('at openai by a failed response without a reason is retryable', async () => {
    const failed = { type: 'response.failed', sequence_number: 9, response: { status: 'failed', error: null } }
    const { failure } = await askFor('openai', { text: ['half '], chunks: [failed], end: 'cut_off' })
    expect(failure).toMatchObject({ retryable: true, message: 'Acme broke off its answer: error.' })
  })

  it('at gemini by a malformed call is retryable', async () => {
    const { failure } = await askFor('gemini', { finishReason: 'MALFORMED_FUNCTION_CALL' })
    expect(failure).toMatchObject({ retryable: true, message: 'Acme broke off its answer: MALFORMED_FUNCTION_CALL.' })
  })
})

describe('a 200 that is not an answer', () => {
  it.each(
    each([
      ['text/html; charset=utf-8', '<html>Sign in</html>'],
      ['application/json', '{}'],
    ]),
  )('of %s, of type %s, names the base URL and is not retried', async (type, contentType, body) => {
    const { fake, failure } = await askFor(type, { status: 200, body, headers: { 'content-type': contentType } })
    const [name] = contentType.split(';')
    const message = `Acme answered with ${name} and not with an event stream; is ${fake.baseUrl} its base URL?`
    expect(failure).toMatchObject({ retryable: false, message })
  })

  const cutOff = 'Acme ended its answer before it was finished.'
  const unreadable = 'Acme sent an answer that cannot be read.'
  it.each(
    each([
      ['nothing', '', cutOff],
      ['half of an event', 'data: {"a', cutOff],
      ['malformed JSON', 'data: {"a\n\n', unreadable],
      ['a page', 'data: <html></html>\n\n', unreadable],
      ['a list', 'data: []\n\n', unreadable],
    ]),
  )('of %s, such as %s, is retryable, in plain words', async (type, _what, body, message) => {
    const { failure } = await askFor(type, { status: 200, body, headers: STREAM })
    expect(failure).toMatchObject({ status: undefined, retryable: true, message })
  })

  it.each(TYPES)('of %s, malformed in the middle, is retryable', async (type) => {
    const { asked, failure } = await askFor(type, { text: ['half '], chunks: ['{"a'] })
    expect(asked.text).toBe('half ')
    expect(failure).toMatchObject({ retryable: true, message: unreadable })
  })
})

describe('an answer without an end', () => {
  const megabyte = 'x'.repeat(1024 * 1024)
  it.each(TYPES)(
    'of %s, in one line, is refused',
    async (type) => {
      const { fake, failure } = await askFor(type, { endless: `data: ${megabyte}` })
      expect(failure).toMatchObject({ retryable: false, message: 'The answer of the model is too long.' })
      expect(await fake.requests[0]?.closed).toBe('hung_up')
    },
    20_000,
  )
})

describe('a blocked answer', () => {
  it.each<[ModelSettings['type'], string]>([
    ['openai', 'content_filter'],
    ['openai_completions', 'content_filter'],
    ['anthropic', 'refusal'],
    ['gemini', 'SAFETY'],
  ])('of %s says so, and is not retried', async (type, finishReason) => {
    const { failure } = await askFor(type, { finishReason })
    expect(failure).toMatchObject({ retryable: false, message: `Acme blocked the answer: ${finishReason}.` })
    expect(failure.hasAnswered).toBe(true)
    expect(failure.inOwnWords().message).toMatch(/^Acme blocked the answer\. The reason is left out/)
  })

  it('of gemini may have no candidates at all', async () => {
    const chunks = [{ promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata: { promptTokenCount: 7 } }]
    const { failure } = await askFor('gemini', { chunks, end: 'cut_off' })
    expect(failure).toMatchObject({ retryable: false, message: 'Acme blocked the answer: PROHIBITED_CONTENT.' })
  })

  it('of openai may be a refusal in words, which is the answer', async () => {
    const item = { id: 'msg_0', type: 'message', role: 'assistant', status: 'in_progress', content: [] }
    const place = { item_id: 'msg_0', output_index: 0, content_index: 0 }
    const { model } = await start('openai', [
      {
        chunks: [
          { type: 'response.output_item.added', output_index: 0, item, sequence_number: 5 },
          { type: 'response.refusal.delta', ...place, delta: 'I cannot.', sequence_number: 6 },
          { type: 'response.refusal.done', ...place, refusal: 'I cannot.', sequence_number: 7 },
        ],
      },
    ])
    const asked = await ask(model, { messages: [userSays('Hi')] })
    expect(asked).toMatchObject({ error: undefined, text: 'I cannot.', finish: { finishReason: 'content_filter' } })
  })
})

describe('an abort', () => {
  const reason = new Error('cancelled by the user')
  it.each(
    each<[string, Answer]>([
      ['before the headers', 'silent'],
      ['before the first part', { end: 'stalled' }],
      ['in the middle of the text', { text: ['some'], end: 'stalled' }],
    ]),
  )('of a call to %s %s throws its reason and hangs up', async (type, _phase, answer) => {
    const controller = new AbortController()
    const { fake, model } = await start(type, [answer])
    const asked = ask(model, { messages: [userSays('Hi')], signal: controller.signal })
    const isOver = asked.then(() => true)
    const later = () => new Promise<boolean>((resolve) => setImmediate(() => resolve(false)))
    while (fake.requests.length === 0 && !(await Promise.race([isOver, later()]))) {}
    controller.abort(reason)
    expect((await asked).error).toBe(reason)
    expect(await fake.requests[0]?.closed).toBe('hung_up')
  })

  it.each(TYPES)('is not needed when the reader of %s stops in the middle', async (type) => {
    const { fake, model } = await start(type, [{ text: ['first', 'second'], end: 'stalled' }])
    for await (const _part of model(requestOf({ messages: [userSays('Hi')] }))) break
    expect(await fake.requests[0]?.closed).toBe('hung_up')
  })
})

describe('a key that no header can have', () => {
  it.each(PROTOCOLS)('is not shown for $type', async ({ type, model }) => {
    const wrong = modelOf({ type, model, baseUrl: 'http://127.0.0.1:1', apiKey: 'secret\nkey-0123456789' })
    const failure = failureOf(await ask(wrong, { messages: [userSays('Hi')] }))
    expect(failure.message).toBe('The connection to Acme failed.')
  })
})
