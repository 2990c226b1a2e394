import { type FakeOpenai, type FakeOpenaiAnswer, startFakeOpenai } from '../../support/providers/chat-completions.ts'
import { ask, failureOf, messageOf, requestOf, userSays } from './ask.ts'
import { chatModel } from './provider-model.ts'

const API_KEY = 'sk-secret-0123456789'
const PIXEL = 'iVBORw0KGgo='
const fakes: FakeOpenai[] = []
const printed = jest.fn()

beforeAll(() => {
  for (const method of ['log', 'info', 'warn', 'error', 'debug'] as const) {
    jest.spyOn(console, method).mockImplementation(printed)
  }
})
afterEach(async () => {
  await Promise.all(fakes.splice(0).map((fake) => fake.close()))
  expect(printed).not.toHaveBeenCalled()
})
afterAll(() => {
  jest.restoreAllMocks()
})

async function start(...answers: FakeOpenaiAnswer[]) {
  const fake = await startFakeOpenai(answers)
  fakes.push(fake)
  const model = chatModel({ baseUrl: fake.baseUrl, apiKey: API_KEY, model: 'gpt-test' })
  return { fake, model }
}

describe('an answer', () => {
  it('streams its text and ends with the usage, the reason and the id of the response', async () => {
    const usage = { prompt_tokens: 100, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 64 } }
    const { model } = await start({ text: ['Hel', 'lo ', '😀'], usage, pauseMs: 20 })
    const asked = await ask(model, { messages: [userSays('Hi')] })
    expect(asked.textDeltas).toEqual(['Hel', 'lo ', '😀'])
    expect(asked.parts.at(-1)).toMatchObject({
      type: 'finish',
      finishReason: 'stop',
      responseId: 'chatcmpl-fake',
      usage: { input_tokens: 100, output_tokens: 5, cache_read_tokens: 64 },
    })
  })

  it('never has used fewer than no tokens', async () => {
    const usage = { prompt_tokens: -3, completion_tokens: -1, prompt_tokens_details: { cached_tokens: -2 } }
    const { model } = await start({ text: ['Hello'], usage })
    const asked = await ask(model, { messages: [userSays('Hi')] })
    expect(asked.parts.at(-1)).toMatchObject({ usage: { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0 } })
  })

  it.each<[string, unknown, object]>([
    ['as text', '{"prompt_tokens": NaN, "completion_tokens": 3}', { input_tokens: 0, output_tokens: 3 }],
    ['as a number in quotes', { prompt_tokens: '7', completion_tokens: 3 }, { input_tokens: 7, output_tokens: 3 }],
    ['too large', '{"prompt_tokens": 1e400, "completion_tokens": 1e300}', { input_tokens: 0, output_tokens: 1e9 }],
    ['in fractions', { prompt_tokens: 7.4, completion_tokens: 2.6 }, { input_tokens: 7, output_tokens: 3 }],
    ['as null', { prompt_tokens: null, completion_tokens: null }, { input_tokens: 0, output_tokens: 0 }],
    ['not at all', {}, { input_tokens: 0, output_tokens: 0 }],
    ['as a list', [], { input_tokens: 0, output_tokens: 0 }],
    [
      'with malformed details',
      { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: 'none', completion_tokens_details: [1] },
      { input_tokens: 7, output_tokens: 3 },
    ],
  ])('is kept when a count of its tokens is given %s', async (_how, usage, expected) => {
    const written = typeof usage === 'string' ? usage : JSON.stringify(usage)
    const finish = JSON.stringify({ index: 0, delta: { content: 'Hello' }, finish_reason: 'stop' })
    const { model } = await start({ chunks: [`{"choices": [${finish}], "usage": ${written}}`], end: 'cut_off' })
    const asked = await ask(model, { messages: [userSays('Hi')] })
    expect(asked).toMatchObject({ error: undefined, text: 'Hello', finish: { usage: expected } })
  })

  it('arrives while the provider is still sending', async () => {
    const { model } = await start({ text: ['first'], end: 'stalled' })
    const answer = model(requestOf({ messages: [userSays('Hi')] }))[Symbol.asyncIterator]()
    expect(await answer.next()).toEqual({ done: false, value: { type: 'text', delta: 'first' } })
  })

  it('puts the fragments of each tool call together', async () => {
    const toolCalls = [
      { id: 'c1', name: 'add', arguments: '{"a": 1, "b": [2, 3]}' },
      { id: 'c2', name: 'now', arguments: '' },
    ]
    const { model } = await start({ text: ['Wait.'], toolCalls })
    const asked = await ask(model, { messages: [userSays('Hi')] })
    expect(asked.calls).toEqual([
      { id: 'c1', name: 'add', arguments: { a: 1, b: [2, 3] } },
      { id: 'c2', name: 'now', arguments: {} },
    ])
    expect(asked.finish?.finishReason).toBe('tool_calls')
  })

  const one = { id: 'c1', name: 'add', arguments: { a: 1 } }
  const two = { id: 'c2', name: 'now', arguments: {} }
  const called = (id: string | undefined, name: string | undefined, args?: unknown, more = {}) => ({
    ...(id === undefined ? {} : { id }),
    function: { ...(name === undefined ? {} : { name }), ...(args === undefined ? {} : { arguments: args }) },
    ...more,
  })

  it.each<[string, object[][]]>([
    ['without an index', [[called('c1', 'add', '{"a":1}')], [called('c2', 'now', '{}')]]],
    ['without an index, in one chunk', [[called('c1', 'add', '{"a":1}'), called('c2', 'now', '{}')]]],
    [
      'without an index, in fragments that repeat the id',
      [[called('c1', 'add', '{"a"')], [called('c2', 'now', '')], [called('c1', undefined, ':1}')]],
    ],
    [
      'without an index, in fragments that have no id',
      [[called('c1', 'add', '{"a"')], [called(undefined, undefined, ':1}')], [called('c2', 'now')]],
    ],
    [
      'with an index that is null or a text',
      [
        [called('c1', 'add', '{"a"', { index: null })],
        [called('c2', 'now', '{}', { index: '1' })],
        [called(undefined, undefined, ':1}', { index: '0' })],
      ],
    ],
    [
      'the first with an index, the second without',
      [[called('c1', 'add', '{"a":1}', { index: 4 }), called('c2', 'now')]],
    ],
    [
      'with an object as arguments',
      [[called('c1', 'add', { a: 1 }, { index: 0 })], [called('c2', 'now', {}, { index: 1 })]],
    ],
    [
      'all with the index 0',
      [[called('c1', 'add', '{"a":1}', { index: 0 })], [called('c2', 'now', '{}', { index: 0 })]],
    ],
    ['with an object as arguments and no index', [[called('c1', 'add', { a: 1 }), called('c2', 'now', null)]]],
    [
      'with an empty type, role and name in later fragments',
      [
        [called('c1', 'add', '{"a"', { index: 0, type: '' })],
        [called('', '', ':1}', { index: 0, type: null })],
        [called('c2', 'now', '', { index: 1, type: 'tool' })],
      ],
    ],
  ])('understands tool calls %s', async (_how, chunks) => {
    const toChunk = (tool_calls: object[]) => ({ choices: [{ delta: { role: '', tool_calls } }] })
    const { model } = await start({ chunks: chunks.map(toChunk), finishReason: 'tool_calls' })
    const asked = await ask(model, { messages: [userSays('Hi')] })
    expect(asked).toMatchObject({ error: undefined, calls: [one, two] })
  })

  it('is refused when a line of it does not end', async () => {
    const megabyte = 'x'.repeat(1024 * 1024)
    const { fake, model } = await start({ endless: `data: "tool_calls"${megabyte}` })
    const startedAt = Date.now()
    const asked = await ask(model, { messages: [userSays('Hi')] })
    expect(failureOf(asked)).toMatchObject({ retryable: false, message: 'The answer of the model is too long.' })
    expect(await fake.requests[0]?.closed).toBe('hung_up')
    expect(Date.now() - startedAt).toBeLessThan(10_000)
  })

  it.each([
    ['{"a": 1', /not JSON/],
    ['"text"', /not an object/],
  ])('says why the arguments %j are no object', async (written, problem) => {
    const { model } = await start({
      toolCalls: [{ id: 'c1', name: 'add', arguments: written }],
      finishReason: 'length',
    })
    const asked = await ask(model, { messages: [userSays('Hi')] })
    expect(asked.calls).toEqual([
      { id: 'c1', name: 'add', arguments: {}, argumentsError: expect.stringMatching(problem) },
    ])
    expect(asked.finish?.finishReason).toBe('length')
  })

  it('yields its thinking before its text', async () => {
    const { model } = await start({ thinking: ['Let me ', 'see.'], text: ['Four.'], pauseMs: 20 })
    const asked = await ask(model, { messages: [userSays('Hi')] })
    expect(asked.parts.map((part) => part.type)).toEqual(['thinking', 'thinking', 'text', 'finish'])
    expect(asked.thinking).toBe('Let me see.')
  })

  it('closes the connection when the reader stops in the middle', async () => {
    const { fake, model } = await start({ text: ['first', 'second'], end: 'stalled' })
    for await (const _part of model(requestOf({ messages: [userSays('Hi')] }))) break
    expect(await fake.requests[0]?.closed).toBe('hung_up')
  })
})

describe('a request', () => {
  it('has the key, the model, the effort, the tools and asks for the usage', async () => {
    const { fake, model } = await start({ text: ['ok'] })
    const parameters = { type: 'object', properties: { a: { type: 'number' } }, additionalProperties: false }
    const tools = [{ name: 'add', description: 'Adds.', parameters }]
    await ask(model, { messages: [userSays('Hi')], tools, reasoningEffort: 'low' })
    expect(fake.requests[0]?.headers.authorization).toBe(`Bearer ${API_KEY}`)
    expect(fake.requests[0]?.body).toMatchObject({
      model: 'gpt-test',
      reasoning_effort: 'low',
      stream_options: { include_usage: true },
      tools: [{ type: 'function', function: { name: 'add', description: 'Adds.', parameters } }],
    })
  })

  it('has no tools and no effort when there are none', async () => {
    const { fake, model } = await start({ text: ['ok'] })
    await ask(model, { messages: [userSays('Hi')] })
    expect(fake.requests[0]?.body).not.toHaveProperty('tools')
    expect(fake.requests[0]?.body).not.toHaveProperty('reasoning_effort')
  })

  it('has the whole conversation', async () => {
    const { fake, model } = await start({ text: ['ok'] })
    await ask(model, {
      systemPrompt: 'Be kind.',
      messages: [
        userSays('Hi'),
        messageOf(
          'agent',
          { type: 'text', text: 'Wait.' },
          { type: 'tool_call', id: 'c1', name: 'add', arguments: { a: 1 } },
          { type: 'tool_call', id: 'c2', name: 'now', arguments: {} },
        ),
        messageOf('tool_result', { type: 'tool_result', tool_call_id: 'c1', result: { sum: 3 } }),
        messageOf('tool_result', { type: 'tool_result', tool_call_id: 'c2', error: 'no clock' }),
        messageOf('agent', { type: 'text', text: 'Three.' }),
      ],
    })
    const functionCall = (id: string, name: string, args: string) => ({
      id,
      type: 'function',
      function: { name, arguments: args },
    })
    expect(fake.requests[0]?.body.messages).toEqual([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Hi' },
      {
        role: 'assistant',
        content: 'Wait.',
        tool_calls: [functionCall('c1', 'add', '{"a":1}'), functionCall('c2', 'now', '{}')],
      },
      { role: 'tool', tool_call_id: 'c1', content: '{"sum":3}' },
      { role: 'tool', tool_call_id: 'c2', content: '{"error":"no clock"}' },
      { role: 'assistant', content: 'Three.' },
    ])
  })

  it('has images as data, and mentions those without', async () => {
    const { fake, model } = await start({ text: ['ok'] })
    const content = [
      { type: 'text' as const, text: 'What is this?' },
      { type: 'image' as const, url: 'https://example.com/cat.png' },
      { type: 'image' as const, base64: PIXEL, media_type: 'image/png' },
      { type: 'image_file' as const, image_id: 'i', filename: 'dog.png' },
    ]
    await ask(model, { messages: [messageOf('user', ...content)] })
    expect(fake.requests[0]?.body.messages[0]?.content).toEqual([
      { type: 'text', text: 'What is this?' },
      { type: 'text', text: '[image not available]' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
      { type: 'text', text: '[image dog.png]' },
    ])
  })

  it("has the images of tool results after the step's last result, where the protocol allows them", async () => {
    const { fake, model } = await start({ text: ['ok'] })
    const image = { type: 'image' as const, base64: PIXEL, media_type: 'image/png' }
    const resultOf = (id: string) => ({ type: 'tool_result' as const, tool_call_id: id, result: 'drawn' })
    await ask(model, {
      messages: [
        userSays('Hi'),
        messageOf('tool_result', resultOf('c1'), image, { type: 'text', text: '[Left out: 1 image.]' }),
        messageOf('tool_result', resultOf('c2')),
        userSays('And?'),
      ],
    })
    const { messages } = fake.requests[0]?.body ?? { messages: [] }
    expect(messages.map(({ role }) => role)).toEqual(['user', 'tool', 'tool', 'user', 'user'])
    expect(messages[1]?.content).toBe('drawn')
    expect(messages[3]?.content).toEqual([
      { type: 'text', text: 'Images of the tool results:' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
      { type: 'text', text: '[Left out: 1 image.]' },
    ])
  })

  it('leaves out an empty agent message', async () => {
    const { fake, model } = await start({ text: ['ok'] })
    await ask(model, {
      messages: [userSays('Hi'), messageOf('agent', { type: 'text', text: '' }), userSays('Hello?')],
    })
    expect(fake.requests[0]?.body.messages.map(({ role }) => role)).toEqual(['user', 'user'])
  })
})

describe('an abort', () => {
  const reason = new Error('cancelled by the user')

  it('before the call sends no request', async () => {
    const { fake, model } = await start({ text: ['ok'] })
    const asked = await ask(model, { messages: [userSays('Hi')], signal: AbortSignal.abort(reason) })
    expect(asked.error).toBe(reason)
    expect(fake.requests).toHaveLength(0)
  })

  it.each<[string, FakeOpenaiAnswer]>([
    ['before the headers', 'silent'],
    ['before the first part', { end: 'stalled' }],
    ['while the model thinks', { thinking: ['hm'], end: 'stalled' }],
    ['in the middle of the text', { text: ['some'], end: 'stalled' }],
  ])('%s throws its reason and hangs up', async (_phase, answer) => {
    const controller = new AbortController()
    const fake = await startFakeOpenai(() => {
      setTimeout(() => controller.abort(reason), 30)
      return answer
    })
    fakes.push(fake)
    const model = chatModel({ baseUrl: fake.baseUrl, apiKey: API_KEY, model: 'gpt-test' })
    const asked = await ask(model, { messages: [userSays('Hi')], signal: controller.signal })
    expect(asked.error).toBe(reason)
    expect(asked.finish).toBeUndefined()
    expect(await fake.requests[0]?.closed).toBe('hung_up')
  })
})
