import type { Model } from '../model.ts'
import { anthropic } from './anthropic.ts'
import { gemini } from './gemini.ts'
import { openaiCompletions } from './openai-completions.ts'
import { openaiResponses } from './openai-responses.ts'
import type { ExplicitSettings, ModelSettings, Protocol } from './protocol.ts'
import { PUBLIC_URLS } from './public-urls.ts'
import { streamModel } from './stream-model.ts'

export type { ModelSettings }

const PROTOCOLS: Record<ModelSettings['type'], (settings: ExplicitSettings) => Protocol> = {
  openai: openaiResponses,
  openai_completions: openaiCompletions,
  anthropic,
  gemini,
}

/**
 * Creates a model of a provider. Nothing is taken from the process's environment, which may have the keys of the user
 * who started it.
 */
export function createModel(settings: ModelSettings): Model {
  const { baseUrl = PUBLIC_URLS[settings.type], apiKey = '' } = settings
  const explicit = {
    ...settings,
    baseUrl,
    apiKey,
    fetch: apiKey === '' ? fetchWithoutKey(settings.fetch) : settings.fetch,
  }
  return streamModel(PROTOCOLS[settings.type], explicit)
}

/** Removes the empty credentials that the SDK sends without a key. */
const fetchWithoutKey =
  (fetch: ModelSettings['fetch']): ModelSettings['fetch'] =>
  (input, init) => {
    const headers = new Headers(init?.headers)
    for (const name of ['authorization', 'x-api-key', 'x-goog-api-key']) headers.delete(name)
    return fetch(input, { ...init, headers })
  }
