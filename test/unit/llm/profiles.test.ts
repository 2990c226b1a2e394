import { readFileSync } from 'node:fs'
import { LlmModelProfile } from '../../../contract/llm-models.ts'
import type { LlmProviderType } from '../../../contract/llm-providers.ts'
import { findProfile, presentProfile } from '../../../domain/models/llm/profiles/find.ts'
import { ProfileFile } from '../../../domain/models/llm/profiles/schema.ts'

const text = readFileSync(new URL('../../../domain/models/llm/profiles/profiles.json', import.meta.url), 'utf8')

describe('the committed profiles', () => {
  const { source, profiles } = ProfileFile.parse(JSON.parse(text))

  it('name their source, its version, licence and date', () => {
    expect(source).toMatchObject({ package: '@earendil-works/pi-ai', licence: 'MIT' })
    expect(source.date > '2026-11-01').toBe(true)
    expect(text.length).toBeLessThan(300_000)
    expect(Object.keys(profiles)).toEqual(Object.keys(profiles).sort())
  })

  it('have a price for every model, and prices for each vendor’s flagships', () => {
    for (const profile of Object.values(profiles)) expect(profile.cost).toBeDefined()
    expect(profiles['openai/gpt-5-mini']?.cost).toEqual({ input: 0.25, output: 2, cache_read: 0.025 })
    expect(profiles['anthropic/claude-sonnet-4-5']?.cost).toEqual({
      input: 3,
      output: 15,
      cache_read: 0.3,
      cache_write: 3.75,
    })
    expect(profiles['google/gemini-2.5-pro']?.cost).toEqual({
      input: 1.25,
      output: 10,
      cache_read: 0.125,
      tiers: [{ above_input_tokens: 200_000, input: 2.5, output: 15, cache_read: 0.25 }],
    })
  })

  it('give efforts to the models that reason, and to no others', () => {
    for (const { reasoning, reasoning_effort } of Object.values(profiles)) {
      if (!reasoning) expect(reasoning_effort).toBeUndefined()
    }
    expect(profiles['openai/gpt-5-mini']?.reasoning_effort).toEqual({
      values: ['minimal', 'low', 'medium', 'high'],
      default: 'medium',
    })
    expect(profiles['anthropic/claude-opus-5']?.reasoning_effort?.values).toContain('xhigh')
  })

  it('are presented as the contract describes them', () => {
    for (const profile of Object.values(profiles)) {
      expect(LlmModelProfile.strict().safeParse(presentProfile(profile)).error).toBeUndefined()
    }
  })
})

describe('looking up a profile', () => {
  it.each<[LlmProviderType, string, string]>([
    ['openai', 'gpt-5-mini', 'GPT-5 Mini'],
    ['openai', 'gpt-5-mini-2025-08-07', 'GPT-5 Mini'],
    ['openai', 'gpt-4o-2024-05-13', 'GPT-4o (2024-05-13)'],
    ['openai', 'gpt-4o-2099-01-01', 'GPT-4o'],
    ['openai_completions', 'gpt-5-mini', 'GPT-5 Mini'],
    ['openai_completions', 'openai/gpt-5-mini', 'GPT-5 Mini'],
    ['openai_completions', 'anthropic/claude-sonnet-4.5', 'Claude Sonnet 4.5'],
    ['openai_completions', 'google/gemini-2.5-pro', 'Gemini 2.5 Pro'],
    ['openai_completions', 'google/gemini-2.5-pro-2025-06-05', 'Gemini 2.5 Pro'],
    ['anthropic', 'claude-sonnet-4-5-20250929', 'Claude Sonnet 4.5'],
    ['anthropic', 'claude-opus-5-20990101', 'Claude Opus 5'],
    ['anthropic', 'claude-opus-5-latest', 'Claude Opus 5'],
    ['gemini', 'gemini-2.5-pro', 'Gemini 2.5 Pro'],
    ['gemini', 'models/gemini-2.5-pro', 'Gemini 2.5 Pro'],
    ['gemini', 'models/gemini-flash-latest', 'Gemini Flash Latest'],
    ['llmsim', 'llmsim-echo', 'llmsim-echo'],
  ])('finds, at a provider of type %s, %s', (type, model, name) => {
    expect(findProfile(type, model)?.name).toBe(name)
  })

  it.each<[LlmProviderType, string]>([
    ['openai', 'gpt-unheard-of'],
    ['openai', 'gpt-5-mini-preview'],
    ['openai', 'anthropic/claude-sonnet-4-5'],
    ['openai', 'claude-sonnet-4-5'],
    ['openai', 'constructor'],
    ['openai', ''],
    ['openai_completions', 'google/gemini-2.5-pro:free'],
    ['anthropic', 'gpt-5-mini'],
    ['gemini', 'models/'],
    ['llmsim', 'gpt-5-mini'],
  ])('finds nothing, at a provider of type %s, for %j', (type, model) => {
    expect(findProfile(type, model)).toBeUndefined()
  })

  it('does not know what another host charges for open weights', () => {
    expect(findProfile('gemini', 'gemma-4-31b-it')?.cost).toMatchObject({ input: 0 })
    const hosted = findProfile('openai_completions', 'google/gemma-4-31b-it')
    expect(hosted).toMatchObject({ open_weights: true })
    expect(hosted?.cost).toBeUndefined()
  })
})

describe('a profile’s presentation', () => {
  it('has names for efforts, and no prices that the interface does not have', () => {
    const gemini = findProfile('gemini', 'gemini-2.5-pro')
    expect(gemini && presentProfile(gemini)).toMatchObject({
      name: 'Gemini 2.5 Pro',
      family: 'gemini-pro',
      cost: { input: 1.25, output: 10, cache_read: 0.125 },
      reasoning_effort: {
        values: expect.arrayContaining([{ value: 'minimal', name: 'Minimal' }]),
        default: 'medium',
      },
    })
    expect(JSON.stringify(gemini && presentProfile(gemini))).not.toContain('tiers')
  })

  it('of a simulated model costs nothing', () => {
    const simulated = findProfile('llmsim', 'llmsim-script')
    expect(simulated && LlmModelProfile.strict().parse(presentProfile(simulated))).toMatchObject({
      limits: { context: 128_000 },
      cost: { input: 0, output: 0, cache_read: 0 },
    })
  })
})
