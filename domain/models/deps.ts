import type { Deps as Below } from '../kit/deps.ts'
import type { Provider } from './llm/catalogue.ts'
import type { PredefinedProvider } from './llm/predefined.ts'

export type Deps = Below & {
  models: {
    /** Providers that every organization has. */
    predefined: PredefinedProvider[]
    /** Returns the fetch that may call a provider: addresses of the environment are trusted, others are checked. */
    fetchOf: (provider: Pick<Provider, 'isPredefined'>) => typeof globalThis.fetch
  }
  /** Maximum number of an organization's providers, and of the models of each. */
  quotas: { llmProviders: number; llmModels: number }
}
