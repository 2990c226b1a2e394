import { isRecord } from '../../../../lib/is-record.ts'
import { createJsonScan } from '../../../../lib/json-scan.ts'
import { ModelError } from '../model.ts'
import { statusError } from '../provider-failure.ts'
import { readReason } from './call-failure.ts'
import { connectionError } from './connection-failure.ts'
import type { ModelList, ModelPage } from './model-lists.ts'

export type ListSource = {
  baseUrl: string
  apiKey?: string | undefined
  providerName: string
  fetch: typeof globalThis.fetch
  signal: AbortSignal
}

const MiB = 1024 * 1024
/** Size limits of a page, so that reading it does not block the process for long. */
const MAX_PAGE_BYTES = 4 * MiB
const PAGE_BOUNDS = { maxParts: 500_000, maxDepth: 32 }
const MAX_REASON_BYTES = 100_000
/** Statuses of servers without this endpoint. */
const NO_LIST = [404, 405, 501]

/** Reads one page of a list, by default the first. Throws `ModelError`, or the signal's reason. */
export async function readPage(
  list: ModelList,
  source: ListSource,
  token: string | undefined,
  leftBytes: number,
): Promise<(ModelPage & { sizeBytes: number }) | 'not_supported'> {
  const response = await send(list, source, token)
  if (token === undefined && NO_LIST.includes(response.status)) {
    await response.body?.cancel()
    return 'not_supported'
  }
  if (!response.ok) throw await refusal(response, source)
  const body = await readBody(response, source, Math.min(MAX_PAGE_BYTES, leftBytes))
  const json = body === undefined ? undefined : parse(body)
  const page = isRecord(json) ? list.read(json) : undefined
  if (body === undefined || page === undefined) throw noList(source)
  return { ...page, sizeBytes: body.length }
}

async function send(list: ModelList, source: ListSource, token: string | undefined): Promise<Response> {
  const { apiKey, signal, fetch } = source
  const url = addressOf(list, source, token)
  try {
    return await fetch(url.href, {
      headers: { accept: 'application/json', ...list.headers, ...(apiKey ? list.keyHeader(apiKey) : {}) },
      signal,
      // The key must not reach another server.
      redirect: 'manual',
    })
  } catch (error) {
    throw connectionFailure(error, source)
  }
}

function addressOf(list: ModelList, { baseUrl, providerName }: ListSource, token: string | undefined): URL {
  const url = URL.parse(baseUrl)
  if (url === null) throw new ModelError(`The base URL of ${providerName} is not a valid URL.`, { retryable: false })
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/models`
  for (const [name, value] of Object.entries(list.query)) url.searchParams.set(name, value)
  if (token !== undefined) url.searchParams.set(list.tokenParameter, token)
  return url
}

/** Reads a body. Returns undefined when it is too large. */
async function readBody(response: Response, source: ListSource, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of response.body ?? []) {
      length += chunk.length
      if (length > maxBytes) return undefined
      chunks.push(chunk)
    }
  } catch (error) {
    throw connectionFailure(error, source)
  }
  return Buffer.concat(chunks)
}

/** Parses JSON within bounds. Returns undefined for anything else. */
function parse(body: Buffer): unknown {
  if (createJsonScan(PAGE_BOUNDS).add(body) !== undefined) return undefined
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}

async function refusal(response: Response, source: ListSource): Promise<ModelError> {
  const body = await readBody(response, source, MAX_REASON_BYTES)
  const reason = readReason(body?.toString() ?? '') || response.statusText
  const { providerName, apiKey = '' } = source
  return statusError({ providerName, apiKey, status: response.status, reason })
}

const noList = ({ providerName }: ListSource) =>
  new ModelError(`${providerName} did not answer with a list of models. Is its base URL right?`, {
    retryable: false,
  })

function connectionFailure(error: unknown, source: ListSource): ModelError {
  source.signal.throwIfAborted()
  return connectionError(error, source)
}
