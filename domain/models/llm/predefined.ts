import type { LlmProviderType } from '../../../contract/llm-providers.ts'

/** Model settings from the service's environment. An empty string counts as unset. */
export type ModelEnvironment = {
  openaiApiKey?: string | undefined
  openaiBaseUrl?: string | undefined
  openaiModel?: string | undefined
  anthropicApiKey?: string | undefined
  anthropicModel?: string | undefined
  geminiApiKey?: string | undefined
  geminiModel?: string | undefined
}

/** A model of every organization. `name` is the provider's own id for it. */
export type PredefinedModel = { id: string; name: string; displayName: string }

/** A provider of every organization: the simulator, or a provider with a key in the environment. */
export type PredefinedProvider = {
  id: string
  name: string
  type: LlmProviderType
  /** Undefined: the provider's own public address. */
  baseUrl: string | undefined
  apiKey: string | undefined
  models: PredefinedModel[]
}

// Agents and sessions of every organization store these ids: add lines, but never renumber them.
const idOf = (number: string) => `01933b5a-0000-7000-8000-00000000${number}`

/** Default models of providers whose environment does not name one. */
export const DEFAULT_MODELS = { openai: 'gpt-5-mini', anthropic: 'claude-sonnet-5-5', gemini: 'gemini-3.8-flash' }

const SIMULATOR: PredefinedProvider = {
  id: idOf('0101'),
  name: 'LLM simulator',
  type: 'llmsim',
  baseUrl: undefined,
  apiKey: undefined,
  models: [
    { id: idOf('0101'), name: 'llmsim-default', displayName: 'Simulator: short answer' },
    { id: idOf('0102'), name: 'llmsim-latency', displayName: 'Simulator: realistic pace' },
    { id: idOf('0103'), name: 'llmsim-echo', displayName: 'Simulator: echo' },
    { id: idOf('0104'), name: 'llmsim-lorem-20', displayName: 'Simulator: 20 tokens' },
    { id: idOf('0105'), name: 'llmsim-lorem-200', displayName: 'Simulator: 200 tokens' },
    { id: idOf('0106'), name: 'llmsim-lorem-2000', displayName: 'Simulator: 2,000 tokens' },
    { id: idOf('0107'), name: 'llmsim-script', displayName: 'Simulator: script' },
  ],
}

/**
 * Returns the predefined providers, in the order in which their first models are the default: the environment's before
 * the simulator.
 */
export const predefinedProviders = (environment: ModelEnvironment): PredefinedProvider[] => [
  ...openai(environment),
  ...hosted('0301', 'Anthropic', 'anthropic', environment.anthropicApiKey, environment.anthropicModel),
  ...hosted('0401', 'Google Gemini', 'gemini', environment.geminiApiKey, environment.geminiModel),
  SIMULATOR,
]

/** A base URL means a compatible server, which seldom speaks more than Chat Completions. */
const openai = ({ openaiApiKey, openaiBaseUrl, openaiModel }: ModelEnvironment): PredefinedProvider[] =>
  hosted('0201', openaiBaseUrl ? 'OpenAI-compatible provider' : 'OpenAI', 'openai', openaiApiKey, openaiModel).map(
    (provider) => (openaiBaseUrl ? { ...provider, type: 'openai_completions', baseUrl: openaiBaseUrl } : provider),
  )

function hosted(
  number: string,
  name: string,
  type: keyof typeof DEFAULT_MODELS,
  apiKey: string | undefined,
  model: string | undefined,
): PredefinedProvider[] {
  if (!apiKey) return []
  const modelName = model || DEFAULT_MODELS[type]
  const models = [{ id: idOf(number), name: modelName, displayName: modelName }]
  return [{ id: idOf(number), name, type, baseUrl: undefined, apiKey, models }]
}
