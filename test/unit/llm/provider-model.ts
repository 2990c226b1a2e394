import type { Model } from '../../../domain/models/llm/model.ts'
import { createModel, type ModelSettings } from '../../../domain/models/llm/providers/create-model.ts'

export const API_KEY = 'sk-secret-0123456789'

/** Creates a model with the settings that most tests want. */
export const modelOf = (settings: Pick<ModelSettings, 'type' | 'baseUrl'> & Partial<ModelSettings>): Model =>
  createModel({
    apiKey: API_KEY,
    model: 'some-model',
    providerName: 'Acme',
    source: 'acme/some',
    fetch,
    ...settings,
  })

/** Creates a model for Chat Completions. */
export const chatModel = (settings: Pick<ModelSettings, 'baseUrl'> & Partial<ModelSettings>): Model =>
  modelOf({ type: 'openai_completions', providerName: 'OpenAI', ...settings })
