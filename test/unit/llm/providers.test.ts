import type { ToolSpec } from '../../../domain/models/llm/model.ts'
import type { ModelSettings } from '../../../domain/models/llm/providers/create-model.ts'
import { ask, userSays } from './ask.ts'
import { PROTOCOLS, useFakes, withBodies } from './protocols.ts'
import { modelOf } from './provider-model.ts'

const { start } = useFakes()
const parameters = { type: 'object', properties: { a: { type: 'number' } }, additionalProperties: false }
const TOOL: ToolSpec = { name: 'add', description: 'Adds.', parameters }
const EPHEMERAL = { cache_control: { type: 'ephemeral' } }

describe('a call', () => {
  it.each(
    withBodies({
      openai: {
        model: 'gpt-5',
        stream: true,
        store: false,
        include: ['reasoning.encrypted_content'],
        input: [
          { role: 'developer', content: 'Be kind.' },
          { role: 'user', content: [{ type: 'input_text', text: 'Hi' }] },
        ],
        tools: [{ type: 'function', ...TOOL, strict: false }],
      },
      openai_completions: {
        model: 'some-chat-model',
        stream: true,
        stream_options: { include_usage: true },
        messages: [
          { role: 'system', content: 'Be kind.' },
          { role: 'user', content: 'Hi' },
        ],
        tools: [{ type: 'function', function: TOOL }],
      },
      anthropic: {
        model: 'claude-sonnet-4-5',
        max_tokens: 64_000,
        stream: true,
        system: [{ type: 'text', text: 'Be kind.', ...EPHEMERAL }],
        messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', ...EPHEMERAL }] }],
        tools: [{ name: 'add', description: 'Adds.', input_schema: parameters }],
      },
      gemini: {
        generationConfig: {},
        systemInstruction: { parts: [{ text: 'Be kind.' }] },
        contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
        tools: [{ functionDeclarations: [{ name: 'add', description: 'Adds.', parametersJsonSchema: parameters }] }],
      },
    }),
  )('to $type is one request, with its key', async ({ type, path, credential: [name, value], body }) => {
    const { fake, model } = await start(type, [{ text: ['ok'] }])
    await ask(model, { systemPrompt: 'Be kind.', messages: [userSays('Hi')], tools: [TOOL] })
    expect(fake.requests).toHaveLength(1)
    expect(fake.requests[0]).toMatchObject({ path, headers: { [name]: value } })
    expect(fake.requests[0]?.body).toEqual(body)
  })

  it.each(PROTOCOLS)('to $type without tools has none', async ({ type }) => {
    const { fake, model } = await start(type, [{ text: ['ok'] }])
    await ask(model, { messages: [userSays('Hi')] })
    expect(fake.requests[0]?.body).not.toHaveProperty('tools')
  })

  it.each(PROTOCOLS)('to $type without a key has no credentials', async ({ type }) => {
    const { fake, model } = await start(type, [{ text: ['ok'] }], { apiKey: undefined })
    expect(await ask(model, { messages: [userSays('Hi')] })).toMatchObject({ text: 'ok', error: undefined })
    for (const name of ['authorization', 'x-api-key', 'x-goog-api-key']) {
      expect(fake.requests[0]?.headers).not.toHaveProperty(name)
    }
  })
})

describe('the environment', () => {
  const wrong = {
    OPENAI_API_KEY: 'wrong',
    OPENAI_BASE_URL: 'http://127.0.0.1:1/wrong',
    OPENAI_ORGANIZATION: 'wrong',
    OPENAI_ORG_ID: 'wrong',
    OPENAI_PROJECT: 'wrong',
    OPENAI_PROJECT_ID: 'wrong',
    ANTHROPIC_API_KEY: 'wrong',
    ANTHROPIC_AUTH_TOKEN: 'wrong',
    ANTHROPIC_BASE_URL: 'http://127.0.0.1:1/wrong',
    GOOGLE_GENERATIVE_AI_API_KEY: 'wrong',
    GOOGLE_GENERATIVE_AI_BASE_URL: 'http://127.0.0.1:1/wrong',
    GEMINI_API_KEY: 'wrong',
    GOOGLE_API_KEY: 'wrong',
  }
  const before = { ...process.env }
  beforeEach(() => void Object.assign(process.env, wrong))
  afterEach(() => {
    for (const name of Object.keys(wrong)) delete process.env[name]
    Object.assign(process.env, before)
  })

  it.each(
    PROTOCOLS.flatMap(({ type, url, model }) => [undefined, 'right'].map((apiKey) => ({ type, url, model, apiKey }))),
  )(
    'changes nothing for $type with the key $apiKey, which calls its public endpoint',
    async ({ type, url, model, apiKey }) => {
      const requests: Request[] = []
      const fetch: typeof globalThis.fetch = async (input, init) => {
        requests.push(new Request(input, init))
        return new Response(null, { status: 401 })
      }
      await ask(modelOf({ type, model, apiKey, baseUrl: undefined, fetch }), { messages: [userSays('Hi')] })
      expect(requests.map((request) => request.url)).toEqual([url])
      const headers = Object.entries(Object.fromEntries(requests[0]?.headers ?? []))
      expect(headers.filter(([, value]) => value.includes('wrong'))).toEqual([])
      expect(headers.filter(([, value]) => value.includes('right'))).toHaveLength(apiKey === undefined ? 0 : 1)
    },
  )
})

describe('an answer', () => {
  it.each(PROTOCOLS)('of $type is the same when all of it arrives at once', async ({ type }) => {
    const content = {
      thinking: ['Let me "', 'see".\n'],
      text: ['He said \\"', 'a', 'a', '\\', '"text":"', '\ud83d', '\ude00', '\u2028</script>\u0000'],
      toolCalls: [{ id: 'c1', name: 'add', arguments: '{"a":1000001}' }],
    }
    const { model } = await start(type, [{ ...content, pauseMs: 20 }, content])
    const slow = await ask(model, { messages: [userSays('Hi')] })
    const fast = await ask(model, { messages: [userSays('Hi')] })
    expect(fast.error).toBeUndefined()
    expect([fast.text, fast.thinking, fast.calls, fast.finish]).toEqual([
      slow.text,
      slow.thinking,
      slow.calls,
      slow.finish,
    ])
    expect(fast.textDeltas.length).toBeLessThanOrEqual(slow.textDeltas.length)
  })

  it.each(PROTOCOLS)('of $type arrives piece by piece, and ends with its usage', async ({ type }) => {
    const { model } = await start(type, [{ text: ['Hel', 'lo ', '😀'], pauseMs: 20 }])
    const asked = await ask(model, { messages: [userSays('Hi')] })
    expect(asked).toMatchObject({ error: undefined, textDeltas: ['Hel', 'lo ', '😀'] })
    expect(asked.finish).toMatchObject({
      finishReason: 'stop',
      responseId: expect.stringMatching(/fake/),
      usage: { input_tokens: 7, output_tokens: 3, cache_read_tokens: type === 'openai_completions' ? 0 : 2 },
      providerData: undefined,
    })
    expect(asked.finish?.usage.cache_creation_tokens).toBe(type === 'anthropic' ? 1 : undefined)
  })

  it.each(PROTOCOLS)('of $type has parallel tool calls, put together', async ({ type }) => {
    const toolCalls = [
      { id: 'c1', name: 'add', arguments: '{"a": 1, "b": [2, 3]}' },
      { id: 'c2', name: 'now', arguments: '' },
    ]
    const { model } = await start(type, [{ text: ['Wait.'], toolCalls }])
    const asked = await ask(model, { messages: [userSays('Hi')], tools: [TOOL] })
    expect(asked).toMatchObject({ error: undefined, text: 'Wait.', finish: { finishReason: 'tool_calls' } })
    expect(asked.calls).toEqual([
      { id: 'c1', name: 'add', arguments: { a: 1, b: [2, 3] } },
      { id: 'c2', name: 'now', arguments: {} },
    ])
    // The calls come last, but a long one is not silence.
    const types = asked.parts.map((part) => part.type)
    expect(types).toContain('progress')
    expect(types.filter((one) => one !== 'progress')).toEqual(['text', 'tool_call', 'tool_call', 'finish'])
  })

  it.each(PROTOCOLS)('of $type has its thinking before its text', async ({ type }) => {
    const { model } = await start(type, [{ thinking: ['Let me see.'], text: ['Four.'] }])
    const asked = await ask(model, { messages: [userSays('Hi')], reasoningEffort: 'low' })
    expect(asked).toMatchObject({ error: undefined, thinking: 'Let me see.', text: 'Four.' })
  })

  it.each<[ModelSettings['type'], string | undefined, string]>([
    ['openai', 'max_output_tokens', 'length'],
    ['openai', 'content_filter', 'content_filter'],
    ['openai', 'a_new_reason', 'a_new_reason'],
    ['openai_completions', 'length', 'length'],
    ['openai_completions', 'function_call', 'tool_calls'],
    ['openai_completions', 'a_new_reason', 'a_new_reason'],
    ['anthropic', 'max_tokens', 'length'],
    ['anthropic', 'stop_sequence', 'stop'],
    ['anthropic', 'refusal', 'content_filter'],
    ['anthropic', 'a_new_reason', 'a_new_reason'],
    ['gemini', 'MAX_TOKENS', 'length'],
    ['gemini', 'SAFETY', 'content_filter'],
    ['gemini', 'A_NEW_REASON', 'A_NEW_REASON'],
  ])('of %s that ends with %s is complete, with the reason %s', async (type, finishReason, expected) => {
    const { model } = await start(type, [{ text: ['Half'], finishReason }])
    const asked = await ask(model, { messages: [userSays('Hi')] })
    expect(asked).toMatchObject({ error: undefined, text: 'Half', finish: { finishReason: expected } })
  })
})
