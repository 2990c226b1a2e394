import type { Deps as Below } from '../kit/deps.ts'
import type { Provider } from './llm/catalogue.ts'
import type { PredefinedProvider } from './llm/predefined.ts'

export type Deps = Below & {
  models: {
    /** Providers of every organization. */
    predefined: PredefinedProvider[]
    /** Returns the fetch function for a provider: addresses from the environment are trusted, others are checked. */
    fetchOf: (provider: Pick<Provider, 'isPredefined'>) => typeof globalThis.fetch
  }
  /** Maximum numbers of an organization's providers and of each provider's models. */
  quotas: { llmProviders: number; llmModels: number }
}
