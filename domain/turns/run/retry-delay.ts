const FIRST_DELAY_MS = 500
const MOST_DELAY_MS = 30_000
/** A provider may ask for more patience than a turn has. */
const MOST_RETRY_AFTER_MS = 5 * 60_000

/** How long to wait after the n-th failure in a row: what the provider asked for, else exponential with jitter. */
export function retryDelayMs(failures: number, retryAfterMs: number | undefined, random = Math.random): number {
  if (retryAfterMs !== undefined) return Math.min(Math.max(retryAfterMs, 0), MOST_RETRY_AFTER_MS)
  const full = Math.min(FIRST_DELAY_MS * 2 ** (failures - 1), MOST_DELAY_MS)
  return Math.round(full / 2 + (full / 2) * random())
}
