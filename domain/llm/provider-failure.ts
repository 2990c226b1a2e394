import { ModelError } from './model.ts'

const MAX_REASON_CHARACTERS = 300

export function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500
}

/** Describes an error status that a provider sent instead of a stream, in a sentence fit for a user. */
export function statusError(failure: {
  providerName: string
  status: number
  reason: string
  retryAfterMs?: number | undefined
}): ModelError {
  const { providerName, status, retryAfterMs } = failure
  const reason = shorten(failure.reason)
  return new ModelError(`${providerName} answered ${status}${reason === '' ? '.' : `: ${reason}`}`, {
    status,
    retryable: isRetryableStatus(status),
    retryAfterMs,
  })
}

export function shorten(reason: string): string {
  const oneLine = reason.replaceAll(/\s+/g, ' ').trim()
  const characters = Array.from(oneLine)
  return characters.length <= MAX_REASON_CHARACTERS
    ? oneLine
    : `${characters.slice(0, MAX_REASON_CHARACTERS).join('')}…`
}
