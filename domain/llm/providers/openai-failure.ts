import { AISDKError, APICallError, InvalidArgumentError, UnsupportedFunctionalityError } from '@ai-sdk/provider'
import { z } from 'zod'
import { ModelError } from '../model.ts'
import { isRetryableStatus, shorten, statusError } from '../provider-failure.ts'

export type Provider = { providerName: string; apiKey: string }

/**
 * Whatever the SDK threw, as the failure the caller decides by. The SDK's error is not kept as its cause: it holds the
 * whole conversation and the URL, and loggers and Temporal write causes down.
 */
export function toModelError(error: unknown, provider: Provider): ModelError {
  if (error instanceof ModelError) return error
  const { providerName } = provider
  // A connection that breaks in mid-stream carries the 200 its headers had, so a status alone says nothing.
  if (APICallError.isInstance(error) && error.statusCode !== undefined && error.statusCode >= 400) {
    return statusError({
      providerName,
      status: error.statusCode,
      reason: redact(error.message, provider),
      retryAfterMs: readRetryAfter(error.responseHeaders ?? {}),
    })
  }
  if (UnsupportedFunctionalityError.isInstance(error) || InvalidArgumentError.isInstance(error)) {
    const message = `${providerName} cannot be asked this: ${shorten(error.message)}`
    return new ModelError(message, { retryable: false })
  }
  // An API error without a status above, and anything else of the runtime's own, comes from the connection.
  if (APICallError.isInstance(error) || !AISDKError.isInstance(error)) return connectionError(error, providerName)
  return new ModelError(`${providerName} sent an answer that cannot be read.`, { retryable: true })
}

const StreamedError = z.object({
  message: z.string(),
  code: z.union([z.string(), z.number()]).nullish(),
  type: z.string().nullish(),
})

/**
 * The content of an error part: a chunk that could not be read, or an error object sent after the 200. That one seldom
 * has a status; without one the provider broke down while it was answering, which a second attempt can mend.
 */
export function toStreamedError(error: unknown, provider: Provider): ModelError {
  const parsed = StreamedError.safeParse(error)
  if (AISDKError.isInstance(error) || !parsed.success) return toModelError(error, provider)
  const code = Number(parsed.data.code ?? undefined)
  const status = code >= 400 && code <= 599 ? code : undefined
  const reason = shorten(redact(parsed.data.message, provider))
  return new ModelError(`${provider.providerName} broke off its answer: ${reason}`, {
    status,
    retryable: status === undefined || isRetryableStatus(status),
  })
}

/** Names the system's error code only: the SDK's messages hold addresses. */
function connectionError(error: unknown, providerName: string): ModelError {
  const code = findCode(error)
  const message = `The connection to ${providerName} failed${code === undefined ? '' : ` (${code})`}.`
  return new ModelError(message, { retryable: true })
}

function findCode(error: unknown): string | undefined {
  let current = error
  for (let depth = 0; depth < 5; depth++) {
    if (typeof current !== 'object' || current === null) return undefined
    if ('code' in current && typeof current.code === 'string') return current.code
    current = 'cause' in current ? current.cause : undefined
  }
  return undefined
}

/** Some servers repeat the key or the address they were called with in what they say about it. */
function redact(message: string, { apiKey }: Provider): string {
  const withoutKey = apiKey === '' ? message : message.replaceAll(apiKey, '[key]')
  return withoutKey.replaceAll(/\/\/[^\s/@]+@/g, '//')
}

/** `retry-after-ms` is OpenAI's; `Retry-After` is seconds or an HTTP date (RFC 9110, 10.2.3). */
export function readRetryAfter(headers: Record<string, string>): number | undefined {
  const exactMs = readNumber(headers['retry-after-ms'])
  if (exactMs !== undefined) return exactMs
  const header = headers['retry-after']
  if (header === undefined) return undefined
  const seconds = readNumber(header)
  if (seconds !== undefined) return seconds * 1000
  // A date has letters; without them, Date.parse takes things like "-1" for one.
  const date = /[a-z]/i.test(header) ? Date.parse(header) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now())
}

function readNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined
}
