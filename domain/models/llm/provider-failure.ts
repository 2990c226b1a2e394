import { ModelError } from './model.ts'

const MAX_REASON_CHARACTERS = 300

export function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500
}

/** Describes an error status that a provider sent instead of a stream, in a sentence for users. */
export function statusError(failure: {
  providerName: string
  status: number
  reason: string
  retryAfterMs?: number | undefined
  apiKey?: string
}): ModelError {
  const { providerName, status, retryAfterMs } = failure
  const reason = clean(failure.reason, failure.apiKey)
  const ownWords = `${providerName} answered ${status}.`
  return new ModelError(reason === '' ? ownWords : `${providerName} answered ${status}: ${reason}`, {
    ownWords,
    status,
    retryable: isRetryableStatus(status),
    retryAfterMs,
  })
}

/** Maximum length of a reason that is searched. V8's regular expressions run out of stack in texts of megabytes. */
const MAX_REASON_LENGTH = 100_000

/**
 * Minimum length of a key that is removed from messages. Shorter ones, as local servers use, are part of many words.
 */
const MIN_KEY_LENGTH = 8

/**
 * Cleans a provider's words for users: one line of at most 300 characters, without the given API key, anything else
 * that looks like a key or a credential, and the credentials of URLs. Some servers repeat these in their messages.
 */
export function clean(reason: string, apiKey = ''): string {
  const withoutKey = apiKey.length < MIN_KEY_LENGTH ? reason : reason.replaceAll(apiKey, '[key]')
  return shorten(
    withoutKey
      .slice(0, MAX_REASON_LENGTH)
      .replaceAll(/\/\/[^\s/@]+@/g, '//')
      .replaceAll(/\b(Bearer|Basic|ApiKey)\s+[\w.~+/=-]{16,}/gi, '$1 [key]')
      .replaceAll(/([?&]key=)[^&\s"']+/g, '$1[key]')
      // Keys of OpenAI, Anthropic and this service begin with "sk-" or "ask_", Google's with "AIza" or "AQ.".
      .replaceAll(/\b(?:(?:sk|ask)[-_]|AIza|AQ\.)[\w-]{8,}/g, '[key]'),
  )
}

function shorten(reason: string): string {
  const oneLine = reason.replaceAll(/\s+/g, ' ').trim()
  const characters = Array.from(oneLine)
  return characters.length <= MAX_REASON_CHARACTERS
    ? oneLine
    : `${characters.slice(0, MAX_REASON_CHARACTERS).join('')}…`
}
