import { ApiError } from './errors.ts'

const FIRST_DELAY_MS = 250
const MAX_DELAY_MS = 15_000
/** Longest delay that the service may ask for. */
export const MAX_ASKED_MS = 5 * 60_000
/** Time limit of an attempt: a connection that died while the computer slept stays silent. */
const ATTEMPT_MS = 45_000
/** Longest delay of a timer. A longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

export type Patience = { attempts: number; ms: number }

/**
 * Limits on repeating a request while a caller waits. The attempts take about half a minute. The time limit is for
 * computers that sleep in between: the service keeps an Idempotency-Key only for a day.
 */
export const SOME_PATIENCE: Patience = { attempts: 8, ms: 60 * 60_000 }
export const ENDLESS_PATIENCE: Patience = { attempts: Number.POSITIVE_INFINITY, ms: Number.POSITIVE_INFINITY }

/** Reports whether the same request may succeed later. Anything but an ApiError is a network failure. */
export const isTemporary = (error: unknown): boolean =>
  !(error instanceof ApiError) || error.status === 408 || error.status === 429 || error.status >= 500

/** Returns the delay after consecutive failures in ms: at least what the service asks for, up to 5 minutes. */
export function delayAfter(failures: number, error?: unknown): number {
  const longest = Math.min(FIRST_DELAY_MS * 2 ** (failures - 1), MAX_DELAY_MS)
  const asked = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0
  return Math.max(longest * (0.5 + Math.random() / 2), Math.min(asked, MAX_ASKED_MS))
}

/** Waits for a time, or until the signal aborts. */
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

/** Repeats a request while its failures are temporary. A timeout counts as temporary. Throws the last failure. */
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
