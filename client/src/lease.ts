import { ApiError } from './errors.ts'
import type { Operations } from './generated/operations.ts'
import { delayAfter, ENDLESS_PATIENCE, isTemporary, repeated, sleep } from './retry.ts'

export type LeasedCall = { session_id: string; tool_call_id: string; holder: string }

export type Lease = {
  /** Aborts when the call is no longer this holder's: answered, cancelled, or not renewed in time. */
  readonly lost: AbortSignal
  /** Stops renewing, and lets others have the call. */
  release(): Promise<void>
  /** Stops renewing: the result has ended the lease. */
  end(): void
}

/** Time limit of a release, which a caller waits for. */
const RELEASE_MS = 5000
/** Delay before another attempt where the service names none. */
const HELD_MS = 5000

/**
 * Takes the lease of a call and renews it. Returns the time in ms after which to try again if another holder has it, and
 * undefined if the call is over. Throws ApiError for an error that retrying cannot fix.
 */
export async function takeLease(
  api: Operations,
  call: LeasedCall,
  signal: AbortSignal,
): Promise<Lease | number | undefined> {
  let sentAt = Date.now()
  const ask = (limited: AbortSignal) => {
    sentAt = Date.now()
    return api.turns.leaseToolCall(call, { signal: limited })
  }
  try {
    const { expires_in_ms } = await repeated(ask, ENDLESS_PATIENCE, signal)
    return keep(api, call, sentAt + expires_in_ms, expires_in_ms)
  } catch (error) {
    if (signal.aborted || isOver(error)) return undefined
    if (isHeld(error)) return error.retryAfterMs ?? HELD_MS
    throw error
  }
}

const isHeld = (error: unknown): error is ApiError => error instanceof ApiError && error.status === 409

/** Reports whether the call, its turn or its session is gone, or only a person answers it. */
export const isOver = (error: unknown): boolean =>
  error instanceof ApiError && (error.code === 'not_waiting' || error.status === 404 || error.status === 400)

function keep(api: Operations, call: LeasedCall, validUntil: number, lengthMs: number): Lease {
  const lost = new AbortController()
  const stopped = new AbortController()
  const renew = async () => {
    let deadline = validUntil
    for (let failures = 0; ; ) {
      await sleep(failures === 0 ? lengthMs / 3 : Math.min(delayAfter(failures), lengthMs / 6), stopped.signal)
      if (stopped.signal.aborted) return
      const sentAt = Date.now()
      const limit = AbortSignal.timeout(Math.max(deadline - sentAt, 1))
      try {
        const renewed = await api.turns.leaseToolCall(call, { signal: AbortSignal.any([limit, stopped.signal]) })
        deadline = sentAt + renewed.expires_in_ms
        failures = 0
      } catch (error) {
        if (stopped.signal.aborted) return
        if (!isTemporary(error) || Date.now() >= deadline) return lost.abort(new Error('The lease of the call is lost'))
        failures++
      }
    }
  }
  void renew()
  return {
    lost: lost.signal,
    end: () => stopped.abort(),
    release: async () => {
      stopped.abort()
      await api.turns.releaseToolCall(call, { signal: AbortSignal.timeout(RELEASE_MS) }).catch(() => {})
    },
  }
}
