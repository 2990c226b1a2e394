import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'
import { isRecord } from '../../../../../lib/is-record.ts'

export type Part = LanguageModelV4StreamPart
export type Json = Record<string, unknown>

/**
 * Reads the events of one answer in a wire format. It takes from them what the service needs, in the AI SDK's terms, and
 * ignores the rest. A test compares the four readers with the SDK's own.
 */
export type StreamReader = {
  /** Returns the parts of an event. Throws `Unreadable` for a malformed one. */
  read(event: Json): Part[]
  /** Returns the parts that come with the end of the stream. An answer without a `finish` was cut off. */
  end(): Part[]
}

/** Error of an event that is malformed. */
export class Unreadable extends Error {
  override name = 'Unreadable'
}

export const toRecord = (value: unknown): Json => (isRecord(value) ? value : {})
export const toText = (value: unknown): string => (typeof value === 'string' ? value : '')
/** Returns a text that says something, such as an id. */
export const toWord = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value : undefined

/** Returns a count of tokens. Some servers send it as text, and Python's NaN has become null. */
export function toCount(value: unknown): number | undefined {
  const count = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
  return typeof count === 'number' && Number.isFinite(count) ? count : undefined
}

type Counts = {
  input?: number | undefined
  output?: number | undefined
  cached?: number | undefined
  written?: number | undefined
}

export const toUsage = ({ input, output, cached, written }: Counts): LanguageModelV4Usage => ({
  inputTokens: { total: input, noCache: undefined, cacheRead: cached, cacheWrite: written },
  outputTokens: { total: output, text: undefined, reasoning: undefined },
})

export const toFinishPart = (
  unified: LanguageModelV4FinishReason['unified'],
  raw: string | undefined,
  usage: LanguageModelV4Usage,
): Part => ({ type: 'finish', finishReason: { unified, raw }, usage })

/** Statuses for the words in which providers say what went wrong after they have answered 200. */
const STATUSES: [words: RegExp, status: number][] = [
  [/overloaded_error/, 529],
  [/insufficient_quota|rate_limit/, 429],
  [/authentication/, 401],
  [/permission/, 403],
  [/not_found/, 404],
  [/too_large/, 413],
  [/invalid|bad_request|context_length|billing/, 400],
  [/overload/, 503],
  [/timeout/, 504],
]

/** Returns the part for an error that a provider sends in its stream. */
export function toErrorPart(error: unknown): Part {
  const { message, code, type } = toRecord(error)
  const known = toCount(code)
  const words = `${toText(code)} ${toText(type)}`.toLowerCase()
  const statusCode = known ?? STATUSES.find(([pattern]) => pattern.test(words))?.[1]
  return { type: 'error', error: { message: toText(message) || toText(error), statusCode } }
}
