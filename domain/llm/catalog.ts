import type { Model } from './model.ts'
import { createModel } from './providers/create-model.ts'
import { llmsim } from './simulator/llmsim.ts'

/** Model settings that the service was started with. An empty string counts as unset. */
export type ModelEnvironment = {
  openaiApiKey?: string | undefined
  openaiBaseUrl?: string | undefined
  openaiModel?: string | undefined
}

export type CatalogModel = {
  /** A UUID, the same in every installation. */
  id: string
  providerId: string
  providerName: string
  providerType: 'llmsim' | 'openai_completions'
  /** The provider's own id of the model. */
  name: string
  displayName: string
  isDefault: boolean
  contextTokens: number
  create: () => Model
}

const OPENAI_BASE_URL = 'https://api.openai.com/v1'
const OPENAI_MODEL = 'gpt-5-mini'
/** Context size that any current model supports. Which model serves a request is not known in advance. */
const CONTEXT_TOKENS = 128_000

/** The simulated models. Their ids are fixed and may be stored: add lines, but never renumber them. */
const SIMULATED_MODELS = [
  { id: '01933b5a-0000-7000-8000-000000000101', name: 'llmsim-default', displayName: 'Simulator: short answer' },
  { id: '01933b5a-0000-7000-8000-000000000102', name: 'llmsim-latency', displayName: 'Simulator: realistic pace' },
  { id: '01933b5a-0000-7000-8000-000000000103', name: 'llmsim-echo', displayName: 'Simulator: echo' },
  { id: '01933b5a-0000-7000-8000-000000000104', name: 'llmsim-lorem-20', displayName: 'Simulator: 20 tokens' },
  { id: '01933b5a-0000-7000-8000-000000000105', name: 'llmsim-lorem-200', displayName: 'Simulator: 200 tokens' },
  { id: '01933b5a-0000-7000-8000-000000000106', name: 'llmsim-lorem-2000', displayName: 'Simulator: 2,000 tokens' },
  { id: '01933b5a-0000-7000-8000-000000000107', name: 'llmsim-script', displayName: 'Simulator: script' },
]

/** Lists the models of this installation, of which exactly one is the default. */
export function listModels(environment: ModelEnvironment): CatalogModel[] {
  const openai = openaiModel(environment)
  const simulated = SIMULATED_MODELS.map((model) =>
    simulatedModel({ ...model, isDefault: openai === undefined && model.name === 'llmsim-default' }),
  )
  return openai === undefined ? simulated : [openai, ...simulated]
}

export function findModel(environment: ModelEnvironment, modelId: string): CatalogModel | undefined {
  return listModels(environment).find((model) => model.id === modelId)
}

export function defaultModel(environment: ModelEnvironment): CatalogModel {
  const model = listModels(environment).find(({ isDefault }) => isDefault)
  if (model === undefined) throw new Error('The model catalog has no default model.')
  return model
}

function simulatedModel(entry: { id: string; name: string; displayName: string; isDefault: boolean }): CatalogModel {
  return {
    ...entry,
    providerId: '01933b5a-0000-7000-8000-000000000101',
    providerName: 'LLM simulator',
    providerType: 'llmsim',
    contextTokens: CONTEXT_TOKENS,
    create: () => createSimulated(entry.name),
  }
}

function createSimulated(name: string): Model {
  const model = llmsim(name)
  if (model === undefined) throw new Error(`There is no simulated model ${name}.`)
  return model
}

function openaiModel(environment: ModelEnvironment): CatalogModel | undefined {
  const { openaiApiKey: apiKey, openaiBaseUrl } = environment
  if (!apiKey) return undefined
  const name = environment.openaiModel || OPENAI_MODEL
  // Set explicitly, because the SDK would read a missing URL from the process's environment.
  const baseUrl = openaiBaseUrl || OPENAI_BASE_URL
  const providerName = openaiBaseUrl ? 'OpenAI-compatible provider' : 'OpenAI'
  return {
    id: '01933b5a-0000-7000-8000-000000000201',
    providerId: '01933b5a-0000-7000-8000-000000000201',
    providerName,
    providerType: 'openai_completions',
    name,
    displayName: name,
    isDefault: true,
    contextTokens: CONTEXT_TOKENS,
    create: () =>
      createModel({
        type: 'openai_completions',
        baseUrl,
        apiKey,
        model: name,
        providerName,
        source: `openai_completions/${name}`,
        fetch: globalThis.fetch,
      }),
  }
}
