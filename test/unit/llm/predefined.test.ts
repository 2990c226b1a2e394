import { chooseModel, findModel, type Stored } from '../../../domain/models/llm/choose.ts'
import { type ModelEnvironment, predefinedProviders } from '../../../domain/models/llm/predefined.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const id = (number: string) => `01933b5a-0000-7000-8000-00000000${number}`
const ALL: ModelEnvironment = { openaiApiKey: 'sk-a', anthropicApiKey: 'sk-b', geminiApiKey: 'c' }
const NOTHING: Stored = { defaultModelId: null, models: null, providers: null }

describe('the predefined providers', () => {
  it('are the simulator alone without a key', () => {
    const providers = predefinedProviders({ openaiApiKey: '', openaiModel: 'gpt-x' })
    expect(providers.map(({ type }) => type)).toEqual(['llmsim'])
    expect(providers[0]?.models.map((model) => [model.id, model.name])).toEqual([
      [id('0101'), 'llmsim-default'],
      [id('0102'), 'llmsim-latency'],
      [id('0103'), 'llmsim-echo'],
      [id('0104'), 'llmsim-lorem-20'],
      [id('0105'), 'llmsim-lorem-200'],
      [id('0106'), 'llmsim-lorem-2000'],
      [id('0107'), 'llmsim-script'],
    ])
  })

  it('are one of each kind with a key in the environment, before the simulator', () => {
    const providers = predefinedProviders(ALL)
    expect(providers.map((one) => [one.id, one.type, one.apiKey, one.models[0]?.id])).toEqual([
      [id('0201'), 'openai', 'sk-a', id('0201')],
      [id('0301'), 'anthropic', 'sk-b', id('0301')],
      [id('0401'), 'gemini', 'c', id('0401')],
      [id('0101'), 'llmsim', undefined, id('0101')],
    ])
  })

  it('have unique, valid ids, and the models that the environment names', () => {
    const models = predefinedProviders({ ...ALL, anthropicModel: 'claude-x', geminiModel: 'gemini-x' }).flatMap(
      (provider) => provider.models,
    )
    for (const model of models) expect(model.id).toMatch(UUID)
    expect(new Set(models.map((model) => model.id)).size).toBe(models.length)
    expect(models.map(({ name }) => name)).toEqual(expect.arrayContaining(['gpt-5-mini', 'claude-x', 'gemini-x']))
  })

  it.each<[ModelEnvironment, object]>([
    [{ openaiApiKey: 'key' }, { type: 'openai', name: 'OpenAI', baseUrl: undefined }],
    [
      { openaiApiKey: 'key', openaiBaseUrl: 'http://localhost:1/v1' },
      { type: 'openai_completions', name: 'OpenAI-compatible provider', baseUrl: 'http://localhost:1/v1' },
    ],
  ])('speak Chat Completions at a base URL of the environment: %j', (environment, provider) => {
    expect(predefinedProviders(environment)[0]).toMatchObject(provider)
  })
})

describe('the choice of a model', () => {
  const own = { baseUrl: null, apiKey: null, type: 'openai', name: 'Own', status: 'active' } as const
  const model = { displayName: null, status: 'active' } as const
  const stored: Stored = {
    defaultModelId: 'organizations',
    models: [
      { ...model, id: 'organizations', providerId: 'own', name: 'gpt-own' },
      { ...model, id: 'named', providerId: 'own', name: 'gpt-named' },
      { ...model, id: 'off', providerId: 'own', name: 'gpt-off', status: 'disabled' },
      { ...model, id: 'of a provider that is off', providerId: 'disabled', name: 'gpt-off' },
      { ...model, id: 'of a provider that is gone', providerId: id('0301'), name: null },
    ],
    providers: [
      { ...own, id: 'own' },
      { ...own, id: 'disabled', status: 'disabled' },
      { ...own, id: id('0301'), name: null, type: null },
    ],
  }
  const simulator = predefinedProviders({})
  const choose = (ids: (string | null | undefined)[], record: Stored = stored, providers = simulator) =>
    chooseModel(providers, record, ids)?.name

  it.each<[ids: (string | null | undefined)[], name: string]>([
    [['named', id('0103')], 'gpt-named'],
    [[undefined, null, id('0103')], 'llmsim-echo'],
    [['unknown', 'named'], 'gpt-named'],
    [['off', 'of a provider that is off', 'of a provider that is gone', id('0103')], 'llmsim-echo'],
    [['off'], 'gpt-own'],
    [[], 'gpt-own'],
  ])('falls through what is gone or disabled: %j', (ids, name) => {
    expect(choose(ids)).toBe(name)
  })

  it('ends with the first model of the installation that is not disabled', () => {
    const disabled = (number: string) => ({
      ...own,
      id: id(number),
      name: null,
      type: null,
      status: 'disabled' as const,
    })
    const providers = predefinedProviders(ALL)
    expect(choose([], NOTHING, providers)).toBe('gpt-5-mini')
    const withoutOpenai = { ...NOTHING, providers: [disabled('0201')] }
    expect(choose([], withoutOpenai, providers)).toBe('claude-sonnet-5-5')
    const withoutAll = { ...NOTHING, providers: ['0201', '0301', '0401'].map(disabled) }
    expect(choose([], withoutAll, providers)).toBe('llmsim-default')
    expect(choose([], { ...NOTHING, providers: [disabled('0101')] })).toBeUndefined()
  })

  it('does not give a key of the environment to an address of the organization', () => {
    const row = { ...own, id: id('0201'), baseUrl: 'https://elsewhere.example/v1', apiKey: 'AAAA' }
    const found = findModel(predefinedProviders(ALL), { ...NOTHING, providers: [row] }, id('0201'))
    expect(found?.provider).toMatchObject({ baseUrl: undefined, apiKey: 'sk-a', storedKey: null })
  })
})
