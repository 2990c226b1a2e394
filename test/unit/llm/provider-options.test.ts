import type { ModelRequest } from '../../../domain/models/llm/model.ts'
import type { ModelSettings } from '../../../domain/models/llm/providers/create-model.ts'
import { ask, failureOf, messageOf, userSays } from './ask.ts'
import { PROTOCOLS, useFakes } from './protocols.ts'

const { start } = useFakes()

/** Asks once and returns the body that was sent. */
async function sent(
  type: ModelSettings['type'],
  settings: Partial<ModelSettings>,
  changes: Pick<ModelRequest, 'reasoningEffort' | 'maxOutputTokens'>,
): Promise<Record<string, unknown>> {
  const { fake, model } = await start(type, [{ text: ['ok'] }], settings)
  const asked = await ask(model, { messages: [userSays('Hi')], ...changes })
  expect(asked).toMatchObject({ error: undefined, text: 'ok' })
  return Object(fake.requests[0]?.body)
}

const pick = (body: Record<string, unknown>, like: object) =>
  Object.fromEntries(Object.keys(like).map((field) => [field, body[field]]))

describe('an effort', () => {
  const encrypted = { include: ['reasoning.encrypted_content'] }
  it.each<[string, string | undefined, boolean | undefined, object]>([
    ['gpt-5', undefined, undefined, { reasoning: undefined, ...encrypted }],
    ['gpt-5', 'minimal', undefined, { reasoning: { effort: 'minimal', summary: 'auto' }, ...encrypted }],
    ['gpt-5', 'high', undefined, { reasoning: { effort: 'high', summary: 'auto' }, ...encrypted }],
    ['gpt-5.2', 'none', undefined, { reasoning: { effort: 'none' }, ...encrypted }],
    ['gpt-4o', undefined, undefined, { reasoning: undefined, include: undefined }],
    ['gpt-4o', 'none', false, { reasoning: undefined, include: undefined }],
    ['gpt-4o', 'high', false, { reasoning: { effort: 'high', summary: 'auto' } }],
    ['a-new-model', 'xhigh', undefined, { reasoning: { effort: 'xhigh', summary: 'auto' }, ...encrypted }],
    ['a-new-model', undefined, true, { reasoning: undefined, ...encrypted }],
    ['a-new-model', undefined, undefined, { reasoning: undefined, include: undefined }],
  ])('of %s on openai: %s (model thinks: %s)', async (model, effort, isReasoning, expected) => {
    expect(pick(await sent('openai', { model, isReasoning }, { reasoningEffort: effort }), expected)).toEqual(expected)
  })

  const adaptive = { type: 'adaptive', display: 'summarized' }
  it.each<[string, string | undefined, number | undefined, object]>([
    ['claude-sonnet-4-5', undefined, undefined, { max_tokens: 64_000, thinking: undefined }],
    ['claude-sonnet-4-5', 'high', 64_000, { max_tokens: 64_000, thinking: { type: 'enabled', budget_tokens: 38_400 } }],
    [
      'claude-sonnet-4-5',
      'xhigh',
      64_000,
      { max_tokens: 64_000, thinking: { type: 'enabled', budget_tokens: 57_600 } },
    ],
    ['claude-sonnet-4-5', 'none', undefined, { max_tokens: 64_000, thinking: { type: 'disabled' } }],
    ['claude-opus-4-6', 'low', undefined, { thinking: adaptive, output_config: { effort: 'low' } }],
    ['claude-opus-4-6', 'xhigh', undefined, { thinking: adaptive, output_config: { effort: 'high' } }],
    [
      'claude-opus-9-9',
      'minimal',
      50_000,
      { max_tokens: 50_000, thinking: adaptive, output_config: { effort: 'low' } },
    ],
    ['claude-3-7-sonnet', 'high', 64_000, { max_tokens: 64_000, thinking: { type: 'enabled', budget_tokens: 38_400 } }],
    ['claude-3-5-haiku', undefined, undefined, { max_tokens: 8192, thinking: undefined }],
    ['a-new-model', undefined, undefined, { max_tokens: 8192, thinking: undefined }],
    ['a-new-model', 'low', undefined, { max_tokens: 8192, thinking: { type: 'enabled', budget_tokens: 1024 } }],
    ['a-new-model', 'xhigh', undefined, { max_tokens: 8192, thinking: { type: 'enabled', budget_tokens: 6554 } }],
    ['a-new-model', 'none', 30_000, { max_tokens: 30_000, thinking: { type: 'disabled' } }],
  ])('of %s on anthropic: %s (at most %s tokens)', async (model, effort, maxOutputTokens, expected) => {
    expect(pick(await sent('anthropic', { model, maxOutputTokens }, { reasoningEffort: effort }), expected)).toEqual(
      expected,
    )
  })

  it.each<[string, string | undefined, boolean | undefined, object | undefined]>([
    ['gemini-2.5-pro', undefined, undefined, undefined],
    ['gemini-2.5-pro', undefined, true, { includeThoughts: true }],
    ['gemini-2.5-flash', 'none', true, { thinkingBudget: 0 }],
    ['gemini-2.5-flash', 'high', undefined, { thinkingBudget: 24_576, includeThoughts: true }],
    ['gemini-3-pro', 'medium', true, { thinkingLevel: 'medium', includeThoughts: true }],
    ['gemini-3-flash', 'xhigh', true, { thinkingLevel: 'high', includeThoughts: true }],
    ['gemini-2.0-flash', 'none', false, undefined],
    ['gemini-2.0-flash', undefined, false, undefined],
  ])('of %s on gemini: %s (model thinks: %s)', async (model, effort, isReasoning, thinkingConfig) => {
    const body = await sent('gemini', { model, isReasoning }, { reasoningEffort: effort })
    expect(body.generationConfig).toEqual(thinkingConfig === undefined ? {} : { thinkingConfig })
  })

  it('goes to openai_completions as it is', async () => {
    expect(await sent('openai_completions', {}, { reasoningEffort: 'xhigh' })).toMatchObject({
      reasoning_effort: 'xhigh',
    })
    expect(await sent('openai_completions', { isReasoning: false }, { reasoningEffort: 'none' })).not.toHaveProperty(
      'reasoning_effort',
    )
  })

  it.each(PROTOCOLS)('that $type does not know is refused, without a request', async ({ type }) => {
    const { fake, model } = await start(type, [])
    const failure = failureOf(await ask(model, { messages: [userSays('Hi')], reasoningEffort: 'enormous' }))
    expect(failure).toMatchObject({ retryable: false, message: 'Acme does not know this reasoning effort.' })
    expect(fake.requests).toHaveLength(0)
  })

  it.each(PROTOCOLS)('that the model of $type refuses is not retried', async ({ type }) => {
    const { model } = await start(type, [{ status: 400, message: 'This model does not think.' }])
    const failure = failureOf(await ask(model, { messages: [userSays('Hi')], reasoningEffort: 'high' }))
    expect(failure).toMatchObject({ retryable: false, message: 'Acme answered 400: This model does not think.' })
  })
})

describe('the limit of a call', () => {
  const thinking = { type: 'disabled' }
  it.each<[ModelSettings['type'], string, Partial<ModelSettings>, string | undefined, number, object]>([
    ['openai', 'gpt-5', {}, undefined, 500, { max_output_tokens: 500 }],
    ['openai', 'gpt-5', { maxOutputTokens: 400 }, 'high', 500, { max_output_tokens: 400 }],
    ['openai_completions', 'some-model', {}, undefined, 500, { max_tokens: 500 }],
    ['openai_completions', 'gpt-5', {}, 'low', 500, { max_completion_tokens: 500, max_tokens: undefined }],
    ['anthropic', 'claude-sonnet-4-5', { maxOutputTokens: 64_000 }, undefined, 500, { max_tokens: 500 }],
    ['anthropic', 'claude-sonnet-4-5', {}, 'high', 500, { max_tokens: 500, thinking }],
    ['anthropic', 'claude-sonnet-4-20250514', {}, 'high', 1024, { max_tokens: 1024, thinking }],
    [
      'anthropic',
      'claude-sonnet-4-5',
      {},
      'high',
      10_000,
      { max_tokens: 10_000, thinking: { type: 'enabled', budget_tokens: 6000 } },
    ],
    ['anthropic', 'claude-sonnet-4-5', { maxOutputTokens: 64_000 }, undefined, 99_000, { max_tokens: 64_000 }],
    ['anthropic', 'claude-opus-4-6', {}, 'high', 500, { max_tokens: 500, output_config: { effort: 'high' } }],
    ['anthropic', 'a-new-model', {}, 'low', 2000, { max_tokens: 2000 }],
    ['gemini', 'gemini-2.5-pro', {}, undefined, 500, { generationConfig: { maxOutputTokens: 500 } }],
  ])('of %s %s (%j, effort %s): %i', async (type, model, settings, reasoningEffort, maxOutputTokens, expected) => {
    const body = await sent(type, { model, ...settings }, { reasoningEffort, maxOutputTokens })
    expect(pick(body, expected)).toEqual(expected)
  })
})

describe('the id of a gemini model', () => {
  it.each(['../../x', 'x/../../y', 'x?a=1', 'x#y', '', '/x', 'x%2e%2e', '..', 'x:y', 'x\\y', 'x y'])(
    'such as %j does not lead elsewhere',
    async (id) => {
      const { fake, model } = await start('gemini', [{ text: ['ok'] }], { model: id })
      const failure = failureOf(await ask(model, { messages: [userSays('Hi')] }))
      expect(failure).toMatchObject({ retryable: false, message: `Acme has no model with the id "${id}".` })
      expect(fake.requests).toHaveLength(0)
    },
  )

  it.each(['gemini-2.5-flash-preview-05-20', 'models/gemini-2.5-pro'])('may be %s', async (id) => {
    const { fake, model } = await start('gemini', [{ text: ['ok'] }], { model: id })
    expect(await ask(model, { messages: [userSays('Hi')] })).toMatchObject({ error: undefined, text: 'ok' })
    expect(fake.requests[0]?.path).toBe(`/v1beta/models/${id.replace('models/', '')}:streamGenerateContent?alt=sse`)
  })
})

describe('the cache of anthropic', () => {
  const POINT = { type: 'ephemeral' }
  const tools = ['add', 'now'].map((name) => ({ name, description: name, parameters: { type: 'object' } }))
  const call = (id: string) => ({ type: 'tool_call' as const, id, name: 'add', arguments: {} })
  const result = (id: string) => messageOf('tool_result', { type: 'tool_result', tool_call_id: id, result: 1 })
  const messages = [
    userSays('One'),
    messageOf('agent', { type: 'text', text: 'Yes?' }),
    userSays('Two'),
    messageOf('agent', call('c1'), call('c2')),
    result('c1'),
    result('c2'),
  ]

  /** Asks once, and returns the paths in the body that have a cache point. */
  async function cachePoints(systemPrompt: string): Promise<string[]> {
    const { fake, model } = await start('anthropic', [{ text: ['ok'] }])
    await ask(model, { systemPrompt, messages, tools })
    const paths: string[] = []
    JSON.stringify(fake.requests[0]?.body, function visit(this: object, key: string, value: unknown) {
      if (key === 'cache_control') paths.push(JSON.stringify({ ...this, cache_control: undefined }))
      return value
    })
    expect(JSON.stringify(fake.requests[0]?.body).split(JSON.stringify(POINT))).toHaveLength(paths.length + 1)
    return paths
  }
  const turns = ['{"type":"text","text":"Two"}', '{"type":"tool_result","tool_use_id":"c2","content":"1"}']

  it('has the system prompt, with the tools before it, and the last two turns of the user', async () => {
    const system = '{"type":"text","text":"Be kind."}'
    expect((await cachePoints('Be kind.')).toSorted()).toEqual([...turns, system].toSorted())
  })

  it('has the tools when there is no system prompt', async () => {
    const tool = '{"name":"now","description":"now","input_schema":{"type":"object"}}'
    expect((await cachePoints('')).toSorted()).toEqual([...turns, tool].toSorted())
  })
})
