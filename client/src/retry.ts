import { ApiError } from './errors.ts'

const FIRST_DELAY_MS = 250
const LONGEST_DELAY_MS = 15_000
/** Longest time that the service may ask for. */
const LONGEST_ASKED_MS = 5 * 60_000
/** Time limit of an attempt: a connection that has died in a sleep says nothing. */
const ATTEMPT_MS = 45_000
/** Longest time that a timer can have. A longer one would be over at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

export type Patience = { attempts: number; ms: number }

/**
 * Patience with a request for whose answer somebody waits. The attempts take about half a minute. A computer may sleep
 * between them, and the service knows an Idempotency-Key for a day only.
 */
export const SOME_PATIENCE: Patience = { attempts: 8, ms: 60 * 60_000 }
export const ENDLESS_PATIENCE: Patience = { attempts: Number.POSITIVE_INFINITY, ms: Number.POSITIVE_INFINITY }

/** Reports whether the same request may succeed later. An error that is no answer is one of the network. */
export const isTemporary = (error: unknown): boolean =>
  !(error instanceof ApiError) || error.status === 408 || error.status === 429 || error.status >= 500

/** Returns the delay after so many failures in a row, in ms, and at least what the service asked for, up to 5 minutes. */
export function delayAfter(failures: number, error?: unknown): number {
  const longest = Math.min(FIRST_DELAY_MS * 2 ** (failures - 1), LONGEST_DELAY_MS)
  const asked = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0
  return Math.max(longest * (0.5 + Math.random() / 2), Math.min(asked, LONGEST_ASKED_MS))
}

/** Waits, until the signal aborts at most. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const wake = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', wake)
      resolve()
    }
    const timer = setTimeout(wake, Math.min(ms, MAX_TIMER_MS))
    signal?.addEventListener('abort', wake)
  })
}

/** Repeats a repeatable request while its failures are temporary, of which too much time is one. Throws the last one. */
export async function repeated<T>(
  request: (signal: AbortSignal) => Promise<T>,
  { attempts, ms }: Patience,
  signal?: AbortSignal,
): Promise<T> {
  const startedAt = Date.now()
  for (let failures = 1; ; failures++) {
    try {
      const limit = AbortSignal.timeout(ATTEMPT_MS)
      return await request(signal ? AbortSignal.any([signal, limit]) : limit)
    } catch (error) {
      if (signal?.aborted || failures >= attempts || !isTemporary(error)) throw error
      await sleep(delayAfter(failures, error), signal)
      if (Date.now() - startedAt >= ms) throw error
    }
  }
}
