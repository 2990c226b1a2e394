import type { LlmProviderType } from '../../../../contract/llm-providers.ts'
import { ModelError } from '../model.ts'
import { type ListedModel, MODEL_LISTS, type ModelList } from './model-lists.ts'
import { type ListSource, readPage } from './model-page.ts'
import { PUBLIC_URLS } from './public-urls.ts'

export type ListSettings = {
  type: LlmProviderType
  baseUrl?: string | undefined
  apiKey?: string | undefined
  /** The provider's name in error messages. */
  providerName: string
  /** Maximum number of models. Longer lists are refused. */
  maxModels: number
  fetch: typeof globalThis.fetch
  signal?: AbortSignal | undefined
}

const TIMEOUT_MS = 30_000
const MAX_PAGES = 20
const MAX_TOTAL_BYTES = 16 * 1024 * 1024

/**
 * Lists a provider's models, in its order. 'not_supported': the provider has no list. Throws `ModelError`, or the
 * signal's reason.
 */
export async function listModels(settings: ListSettings): Promise<ListedModel[] | 'not_supported'> {
  const { type, providerName, maxModels, signal } = settings
  if (type === 'llmsim') return 'not_supported'
  signal?.throwIfAborted()
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), TIMEOUT_MS)
  const limited = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal])
  try {
    const source = { ...settings, baseUrl: settings.baseUrl ?? PUBLIC_URLS[type], signal: limited }
    return await readPages(MODEL_LISTS[type], source, maxModels)
  } catch (error) {
    signal?.throwIfAborted()
    if (!late.signal.aborted) throw error
    const message = `${providerName} did not send its list of models within ${TIMEOUT_MS / 1000} s.`
    throw new ModelError(message, { retryable: true })
  } finally {
    clearTimeout(timer)
  }
}

async function readPages(
  list: ModelList,
  source: ListSource,
  maxModels: number,
): Promise<ListedModel[] | 'not_supported'> {
  const models = new Map<string, ListedModel>()
  const tokens = new Set<string>()
  let leftBytes = MAX_TOTAL_BYTES
  let token: string | undefined
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await readPage(list, source, token, leftBytes)
    if (page === 'not_supported') return page
    leftBytes -= page.sizeBytes
    for (const model of page.models) if (!models.has(model.name)) models.set(model.name, model)
    if (models.size > maxModels) throw tooMany(source, `${maxModels.toLocaleString('en')} models`)
    token = page.next
    if (token === undefined || tokens.has(token)) return [...models.values()]
    tokens.add(token)
  }
  throw tooMany(source, `${MAX_PAGES} pages of models`)
}

const tooMany = ({ providerName }: ListSource, limit: string) =>
  new ModelError(`${providerName} lists more than ${limit}, which is the limit.`, { retryable: false })
