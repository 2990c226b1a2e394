import { AISDKError, APICallError, UnsupportedFunctionalityError } from '@ai-sdk/provider'
import { z } from 'zod'
import { ModelError } from '../model.ts'
import { clean, isRetryableStatus, statusError } from '../provider-failure.ts'
import { causesOf, connectionError } from './connection-failure.ts'
import type { ExplicitSettings } from './protocol.ts'
import { Unreadable } from './streams/reader.ts'

export type Provider = Pick<ExplicitSettings, 'providerName' | 'apiKey' | 'baseUrl'>

/** Maximum length of an error's body that is searched for its reason. */
const MAX_BODY_LENGTH = 100_000

/**
 * Converts anything that the SDK throws into a `ModelError`. The SDK's error is not kept as its cause: it contains the
 * whole conversation and the URL, and loggers and Temporal record causes.
 */
export function toModelError(error: unknown, provider: Provider): ModelError {
  const own = causesOf(error).find((cause) => cause instanceof ModelError)
  if (own !== undefined) return own
  const { providerName } = provider
  // The error of a connection that breaks mid-stream carries the 200 of its headers, so only a status from 400 counts.
  if (APICallError.isInstance(error) && error.statusCode !== undefined && error.statusCode >= 400) {
    return statusError({
      providerName,
      status: error.statusCode,
      reason: reasonOf(error),
      apiKey: provider.apiKey,
      retryAfterMs: readRetryAfter(error.responseHeaders ?? {}) ?? readRetryDelay(error.responseBody),
    })
  }
  if (UnsupportedFunctionalityError.isInstance(error)) {
    const ownWords = `${providerName} does not take a part of this conversation.`
    const message = `${ownWords.slice(0, -1)}: ${clean(error.functionality)}.`
    return new ModelError(message, { ownWords, retryable: false })
  }
  // An API error without such a status comes from the connection, as do errors of the runtime.
  if (APICallError.isInstance(error) || !isUnreadable(error)) return connectionError(error, provider)
  return new ModelError(`${providerName} sent an answer that cannot be read.`, { retryable: true })
}

const isUnreadable = (error: unknown): boolean => error instanceof Unreadable || AISDKError.isInstance(error)

/** Reports a 200 without an event stream, as a wrong base URL gives. */
export function notAStream(contentType: string, provider: Provider): ModelError {
  const { providerName, baseUrl, apiKey } = provider
  // Only the name: parameters may quote the request.
  const [type = ''] = /^\s*[\w.+-]+\/[\w.+-]+/.exec(contentType) ?? []
  const message = `${providerName} answered with ${clean(type, apiKey)} and not with an event stream; is ${clean(baseUrl, apiKey)} its base URL?`
  const ownWords = `${providerName} answered with something that is not an event stream.`
  return new ModelError(message, { ownWords, retryable: false })
}

/** Maximum number of wrong fields that are named. */
const MAX_FIELDS = 5
/** Error of FastAPI about a field of the request. */
const FieldProblem = z
  .object({ loc: z.array(z.union([z.string(), z.number()])).catch([]), msg: z.string() })
  .transform(({ loc, msg }) => (loc.length === 0 ? msg : `${loc.join('.')}: ${msg}`))

const Reason = z
  .union([
    z.object({ error: z.object({ message: z.string() }) }).transform(({ error }) => error.message),
    z.object({ error: z.string() }).transform(({ error }) => error),
    z.object({ message: z.string() }).transform(({ message }) => message),
    z.object({ detail: z.string() }).transform(({ detail }) => detail),
    z.object({ detail: z.array(FieldProblem) }).transform(({ detail }) => detail.slice(0, MAX_FIELDS).join('; ')),
  ])
  .catch('')

const reasonOf = ({ message, responseBody = '' }: APICallError): string => readReason(responseBody) || message

/** Reads the reason from an error's body in one of the forms that compatible servers use. Returns '' without one. */
export function readReason(responseBody: string): string {
  if (responseBody.length > MAX_BODY_LENGTH) return ''
  try {
    const body: unknown = JSON.parse(responseBody)
    // Google's OpenAI-compatible endpoint sends a list.
    return Reason.parse(Array.isArray(body) ? body[0] : body).trim()
  } catch {
    return ''
  }
}

const StreamedError = z.object({ message: z.string(), statusCode: z.number().optional() })

/**
 * Converts an error object that a provider has sent after the 200. It seldom has a status. Without one, the provider
 * failed while it was answering, so a retry may succeed. Before the answer has begun, a status says as much as one
 * instead of the 200.
 */
export function toStreamedError(error: unknown, provider: Provider, hasBegun: boolean): ModelError {
  const { message, statusCode } = StreamedError.parse(error)
  const status = statusCode !== undefined && statusCode >= 400 && statusCode <= 599 ? statusCode : undefined
  const { providerName, apiKey } = provider
  if (!hasBegun && status !== undefined) return statusError({ providerName, status, reason: message, apiKey })
  const ownWords = `${providerName} broke off its answer.`
  const reason = clean(message, apiKey)
  return new ModelError(reason === '' ? ownWords : `${providerName} broke off its answer: ${reason}`, {
    ownWords,
    status,
    retryable: status === undefined || isRetryableStatus(status),
  })
}

/** Reads the delay in ms from `retry-after-ms` (OpenAI) or `Retry-After`, seconds or HTTP date (RFC 9110, 10.2.3). */
export function readRetryAfter(headers: Record<string, string>): number | undefined {
  const exactMs = readNumber(headers['retry-after-ms'])
  if (exactMs !== undefined) return exactMs
  const header = headers['retry-after']
  if (header === undefined) return undefined
  const seconds = readNumber(header)
  if (seconds !== undefined) return seconds * 1000
  // Without this check for letters, Date.parse would accept values such as "-1" as a date.
  const date = /[a-z]/i.test(header) ? Date.parse(header) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now())
}

/** Reads a number that is not absurd: nobody would wait for it, and a user is told of it. */
function readNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d{1,12}(\.\d+)?\s*$/.test(text) ? Number(text) : undefined
}

/** Reads the delay in ms that Google gives in the body, as `"retryDelay": "34.5s"`. */
function readRetryDelay(body = ''): number | undefined {
  const [, seconds] = /"retryDelay":\s*"(\d{1,9}(?:\.\d{1,9})?)s"/.exec(body.slice(0, MAX_BODY_LENGTH)) ?? []
  return seconds === undefined ? undefined : Math.ceil(Number(seconds) * 1000)
}

export function cutOff({ providerName }: Provider): ModelError {
  return new ModelError(`${providerName} ended its answer before it was finished.`, { retryable: true })
}
