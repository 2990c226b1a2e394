import { defaultModel, findModel, listModels } from '../../../domain/llm/catalog.ts'
import { type FakeOpenai, startFakeOpenai } from '../../support/providers/chat-completions.ts'
import { ask, userSays } from './ask.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

describe('the catalog without a key', () => {
  it('has the simulated models, and llmsim-default as the default', () => {
    const models = listModels({})
    expect(models.map(({ name }) => name)).toEqual([
      'llmsim-default',
      'llmsim-latency',
      'llmsim-echo',
      'llmsim-lorem-20',
      'llmsim-lorem-200',
      'llmsim-lorem-2000',
      'llmsim-script',
    ])
    expect(models.filter(({ isDefault }) => isDefault).map(({ name }) => name)).toEqual(['llmsim-default'])
    expect(defaultModel({ openaiApiKey: '', openaiModel: 'gpt-x' }).name).toBe('llmsim-default')
  })

  it('gives every entry a unique, valid id and a model that can be created', () => {
    const models = listModels({ openaiApiKey: 'key' })
    for (const model of models) {
      expect(model.id).toMatch(UUID)
      expect(model.providerId).toMatch(UUID)
      expect(model.contextTokens).toBeGreaterThan(0)
      expect(model.create()).toBeInstanceOf(Function)
      expect(findModel({ openaiApiKey: 'key' }, model.id)?.name).toBe(model.name)
    }
    expect(new Set(models.map(({ id }) => id)).size).toBe(models.length)
    expect(findModel({}, '00000000-0000-0000-0000-000000000000')).toBeUndefined()
  })
})

describe('the catalog with a key', () => {
  let fake: FakeOpenai | undefined
  afterEach(() => fake?.close())

  it('has one OpenAI model, which is the only default', () => {
    const environment = { openaiApiKey: 'key' }
    expect(defaultModel(environment)).toMatchObject({
      name: 'gpt-5-mini',
      providerType: 'openai_completions',
      providerName: 'OpenAI',
    })
    expect(listModels(environment).filter(({ isDefault }) => isDefault)).toHaveLength(1)
    expect(listModels(environment)).toHaveLength(8)
  })

  it('calls the configured model at the configured URL', async () => {
    fake = await startFakeOpenai([{ text: ['pong'] }])
    const model = defaultModel({ openaiApiKey: 'key', openaiBaseUrl: fake.baseUrl, openaiModel: 'local-1' })
    expect(model).toMatchObject({ name: 'local-1', displayName: 'local-1', providerName: 'OpenAI-compatible provider' })
    expect((await ask(model.create(), { messages: [userSays('ping')] })).text).toBe('pong')
    expect(fake.requests[0]?.body.model).toBe('local-1')
  })
})
