const FIRST_DELAY_MS = 500
const MAX_DELAY_MS = 30_000
/** Upper limit on a provider's Retry-After, which may be longer than a turn can wait. */
const MAX_RETRY_AFTER_MS = 5 * 60_000

/** Returns how long the provider asks to wait, in words, when that is longer than the service waits. Else ''. */
export const longPause = (retryAfterMs = 0): string =>
  retryAfterMs > MAX_RETRY_AFTER_MS ? ` (it asks for a pause of ${Math.ceil(retryAfterMs / 1000)} s)` : ''

/** Returns the delay in whole ms after the n-th failure in a row: the provider's own, else exponential with jitter. */
export function retryDelayMs(failures: number, retryAfterMs: number | undefined, random = Math.random): number {
  if (retryAfterMs !== undefined) return Math.ceil(Math.min(Math.max(retryAfterMs, 0), MAX_RETRY_AFTER_MS))
  const full = Math.min(FIRST_DELAY_MS * 2 ** (failures - 1), MAX_DELAY_MS)
  return Math.round(full / 2 + (full / 2) * random())
}
