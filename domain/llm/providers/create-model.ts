import type { Model } from '../model.ts'
import { anthropic } from './anthropic.ts'
import { boundedFetch } from './bounded-fetch.ts'
import { gemini } from './gemini.ts'
import { openaiCompletions } from './openai-completions.ts'
import { openaiResponses } from './openai-responses.ts'
import type { ExplicitSettings, ModelSettings, Protocol } from './protocol.ts'
import { streamModel } from './stream-model.ts'

export type { ModelSettings }

const OPENAI_URL = 'https://api.openai.com/v1'

const PROTOCOLS: Record<
  ModelSettings['type'],
  { defaultUrl: string; create: (settings: ExplicitSettings) => Protocol }
> = {
  openai: { defaultUrl: OPENAI_URL, create: openaiResponses },
  openai_completions: { defaultUrl: OPENAI_URL, create: openaiCompletions },
  anthropic: { defaultUrl: 'https://api.anthropic.com/v1', create: anthropic },
  gemini: { defaultUrl: 'https://generativelanguage.googleapis.com/v1beta', create: gemini },
}

/**
 * Creates a model of a provider. Nothing is taken from the process's environment, which has the keys of whoever started
 * the process.
 */
export function createModel(settings: ModelSettings): Model {
  const { defaultUrl, create } = PROTOCOLS[settings.type]
  const { baseUrl = defaultUrl, apiKey = '' } = settings
  const explicit = {
    ...settings,
    baseUrl,
    apiKey,
    fetch: boundedFetch(apiKey === '' ? fetchWithoutKey(settings.fetch) : settings.fetch),
  }
  return streamModel(create(explicit), explicit)
}

/** Removes the empty credentials that the SDK sends without a key. */
const fetchWithoutKey =
  (fetch: ModelSettings['fetch']): ModelSettings['fetch'] =>
  (input, init) => {
    const headers = new Headers(init?.headers)
    for (const name of ['authorization', 'x-api-key', 'x-goog-api-key']) headers.delete(name)
    return fetch(input, { ...init, headers })
  }
