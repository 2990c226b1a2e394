/** Time for which a delivery is attempted. */
export const PATIENCE_MS = 3 * 24 * 3_600_000
const FIRST_MS = 5000
const FACTOR = 3
const MOST_MS = 8 * 3_600_000
/** Part of a delay that is drawn, so that the deliveries of an outage do not come back together. */
const JITTER = 0.2
const MAX_RETRY_AFTER_MS = 24 * 3_600_000

type Failure = {
  /** Number of attempts so far, 1 or more. */
  attempts: number
  /** Time since the delivery began. */
  ageMs: number
  /** Time that the receiver asks for. */
  retryAfterMs?: number | undefined
}

/**
 * Returns the time until the next attempt, undefined when there is none: 5 s, three times as long after each attempt up
 * to 8 h, for three days. The last attempt is made when they are over. `random` is from 0 to 1.
 */
export function backOffMs({ attempts, ageMs, retryAfterMs = 0 }: Failure, random: number): number | undefined {
  const leftMs = PATIENCE_MS - ageMs
  if (leftMs <= 0) return undefined
  const ownMs = Math.min(FIRST_MS * FACTOR ** (attempts - 1), MOST_MS) * (1 - JITTER + 2 * JITTER * random)
  const askedMs = Math.min(retryAfterMs, MAX_RETRY_AFTER_MS)
  return Math.round(Math.min(Math.max(ownMs, askedMs), leftMs))
}

/** Returns the time that an answer asks for by Retry-After: in seconds, or a date by the clock of its Date header. */
export function retryAfterMs(headers: Headers): number | undefined {
  const text = headers.get('retry-after')?.trim() ?? ''
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const until = Date.parse(text)
  const now = Date.parse(headers.get('date') ?? '')
  if (!/[a-z]/i.test(text) || Number.isNaN(until)) return undefined
  return Math.max(until - (Number.isNaN(now) ? Date.now() : now), 0)
}
