import { toProfiles } from '../../../scripts/model-profiles/convert.ts'

const cost = { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 0 }
const model = (id: string, changes: Record<string, unknown> = {}) => ({
  id,
  name: `The ${id}`,
  api: 'some-api',
  baseUrl: 'https://provider.example',
  reasoning: true,
  input: ['text', 'image'],
  cost,
  contextWindow: 400_000,
  maxTokens: 128_000,
  ...changes,
})
const file = (...models: { id: string }[]) => ({
  'some-api': Object.fromEntries(models.map((m) => [`chat:${m.id}`, m])),
})
const convert = (files: { openai?: unknown; anthropic?: unknown; google?: unknown; router?: unknown }) =>
  toProfiles(
    { openai: files.openai ?? {}, anthropic: files.anthropic ?? {}, google: files.google ?? {} },
    files.router ?? {},
  )
const levels = { off: null, minimal: 'minimal', low: 'low', medium: 'medium', high: 'high', xhigh: null, max: 'max' }

describe('converting the package’s models', () => {
  it('keeps what the profiles have, under keys in order', () => {
    const openai = file(
      model('gpt-5-mini', { thinkingLevelMap: levels, compat: { supportsStrictMode: true } }),
      model('gpt-4.1', { reasoning: false }),
    )
    const profiles = convert({ google: file(model('gemini-3.5-flash')), openai })
    expect(Object.keys(profiles)).toEqual(['google/gemini-3.5-flash', 'openai/gpt-4.1', 'openai/gpt-5-mini'])
    expect(profiles['openai/gpt-5-mini']).toEqual({
      name: 'The gpt-5-mini',
      family: 'gpt-mini',
      attachment: true,
      reasoning: true,
      temperature: false,
      tool_call: true,
      structured_output: true,
      open_weights: false,
      modalities: { input: ['text', 'image'], output: ['text'] },
      limits: { context: 400_000, output: 128_000 },
      cost: { input: 2, output: 10, cache_read: 0.2 },
      reasoning_effort: { values: ['minimal', 'low', 'medium', 'high'], default: 'medium' },
    })
  })

  it.each([
    ['claude-sonnet-4-5-20250929', 'claude-sonnet'],
    ['gpt-4o-2024-05-13', 'gpt'],
    ['o4-mini', 'o-mini'],
    ['gemini-3.1-flash-lite-preview', 'gemini-flash-lite'],
    ['gemma-4-26b-a4b-it', 'gemma'],
  ])('finds the family of %s', (id, family) => {
    expect(convert({ openai: file(model(id)) })[`openai/${id}`]?.family).toBe(family)
  })

  it('leaves out what does not chat', () => {
    const google = { ...file(model('deep-research-preview-04-2026')), other: { 'classifier:x': { id: 'x' } } }
    expect(convert({ google })).toEqual({})
  })

  it('takes a cache price of 0 for unknown, unless everything is free', () => {
    const free = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
    const profiles = convert({
      anthropic: file(model('a', { cost: { ...cost, cacheRead: 0, cacheWrite: 2.5 } }), model('b', { cost: free })),
    })
    expect(profiles['anthropic/a']?.cost).toEqual({ input: 2, output: 10, cache_write: 2.5 })
    expect(profiles['anthropic/b']?.cost).toEqual({ input: 0, output: 0, cache_read: 0, cache_write: 0 })
  })

  it('keeps price tiers, and takes a context that ends at one from the router', () => {
    const tiers = [{ inputTokensAbove: 272_000, input: 4, output: 15, cacheRead: 0.4, cacheWrite: 0 }]
    const capped = (id: string) => model(id, { cost: { ...cost, tiers }, contextWindow: 272_000 })
    const profiles = convert({
      openai: file(
        capped('a'),
        capped('b'),
        model('c', { cost: { ...cost, tiers } }),
        model('d', { cost: { ...cost, tiers }, contextWindow: 200_000 }),
      ),
      router: file(...['a', 'c', 'd'].map((id) => model(`openai/${id}`, { contextWindow: 1_050_000 }))),
    })
    expect(profiles['openai/a']).toMatchObject({
      limits: { context: 1_050_000 },
      cost: { tiers: [{ above_input_tokens: 272_000, input: 4, output: 15, cache_read: 0.4 }] },
    })
    expect(profiles['openai/b']?.limits.context).toBe(272_000)
    expect(profiles['openai/c']?.limits.context).toBe(400_000)
    expect(profiles['openai/d']?.limits.context).toBe(200_000)
  })

  it.each([
    [
      'openai',
      'gpt-5.4',
      { off: 'none', low: 'low', medium: 'medium', xhigh: 'xhigh' },
      'none low medium xhigh',
      'none',
    ],
    ['openai', 'gpt-7', { off: null, minimal: null, low: 'low', high: 'high' }, 'low high', 'high'],
    ['openai', 'gpt-7', { off: 'none', medium: 'medium' }, 'none medium', 'medium'],
    ['anthropic', 'claude-haiku-4-5', undefined, 'none minimal low medium high', 'none'],
    ['anthropic', 'claude-opus-9', { off: null, xhigh: 'xhigh' }, 'minimal low medium high xhigh', 'high'],
    ['google', 'gemini-2.5-pro', undefined, 'minimal low medium high', 'medium'],
    ['google', 'gemini-3.5-flash-lite', { off: null }, 'minimal low medium high', 'minimal'],
    ['google', 'gemini-3.1-pro-preview', { off: null, minimal: null }, 'low medium high', 'high'],
  ] as const)('finds the efforts of %s %s with levels %j', (vendor, id, thinkingLevelMap, values, byDefault) => {
    const profile = convert({ [vendor]: file(model(id, { thinkingLevelMap })) })[`${vendor}/${id}`]
    expect(profile?.reasoning_effort).toEqual({ values: values.split(' '), default: byDefault })
  })

  const noLevel = { off: 'none' }
  it.each([
    ['openai', 'gpt-4.1', { reasoning: false }, true],
    ['openai', 'gpt-5.4', { thinkingLevelMap: noLevel }, true],
    ['openai', 'gpt-5.5', { thinkingLevelMap: { medium: 'medium', ...noLevel } }, false],
    ['anthropic', 'claude-sonnet-4-5', {}, true],
    ['anthropic', 'claude-opus-5', { compat: { supportsTemperature: false } }, false],
    ['anthropic', 'claude-fable-5', {}, false],
    ['google', 'gemini-2.5-pro', {}, true],
  ] as const)('knows whether %s %s %j takes a temperature', (vendor, id, changes, expected) => {
    expect(convert({ [vendor]: file(model(id, changes)) })[`${vendor}/${id}`]?.temperature).toBe(expected)
  })

  it.each([
    ['openai', 'gpt-5', { compat: { supportsStrictMode: true } }, true],
    ['openai', 'gpt-5', {}, false],
    ['openai', 'gpt-4-turbo', { compat: { supportsStrictMode: true } }, false],
    ['openai', 'gpt-5.4-pro', { compat: { supportsStrictMode: true } }, false],
    ['anthropic', 'claude-sonnet-4-5', { compat: { supportsStrictTools: true } }, true],
    ['google', 'gemini-2.5-pro', {}, true],
  ] as const)('knows whether %s %s %j has structured output', (vendor, id, changes, expected) => {
    expect(convert({ [vendor]: file(model(id, changes)) })[`${vendor}/${id}`]?.structured_output).toBe(expected)
  })

  it.each([
    ['a model without a price', { cost: undefined }],
    ['a price that is not a number', { cost: { ...cost, input: '2' } }],
    ['a price below zero', { cost: { ...cost, input: -2 } }],
    ['a price finer than can be added exactly', { cost: { ...cost, input: 0.0000001 } }],
    ['a model without a limit', { contextWindow: 0 }],
  ])('refuses %s', (_, changes) => {
    expect(() => convert({ openai: file(model('a', changes)) })).toThrow()
  })
})
