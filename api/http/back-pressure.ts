import type { ServerResponse } from 'node:http'

/** Node says that a socket has taken what it was given, or nothing: what is longer is given in pieces. */
const PIECE_BYTES = 128 * 1024
/**
 * A client that does not take a piece in this time, in ms, takes nothing. The system's buffer for a connection grows to
 * some megabytes, and takes a piece when a third of it has gone: a line of 11 KB/s is fast enough.
 */
export const STALLED_MS = 120_000

export type Patience = {
  stalledMs?: number
  /** Nobody waits for the client any more once it aborts. */
  signal?: AbortSignal | undefined
  /** Whether what has been begun is finished all the same, for a signal that aborts with this reason. */
  isPatient?: (reason: unknown) => boolean
}

/**
 * Writes as fast as the client takes it, so that no more than `text` is held for it. False when it does not take it,
 * has gone, or the signal aborted. The rest is given to the socket all the same: what follows half a frame would be taken
 * for its other half.
 */
export async function writeInPieces(
  res: ServerResponse,
  text: string | Uint8Array,
  patience: Patience = {},
): Promise<boolean> {
  const { signal, isPatient = () => false } = patience
  const bytes = typeof text === 'string' ? Buffer.from(text) : text
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    const rest = bytes.subarray(at + PIECE_BYTES)
    if (res.write(bytes.subarray(at, at + PIECE_BYTES)) || (await drained(res, patience))) continue
    const goesOn = signal?.aborted === true && isPatient(signal.reason)
    if (goesOn && (await drained(res, { ...patience, signal: undefined }))) continue
    if (rest.length > 0) res.write(rest)
    return false
  }
  return true
}

/** Ends an answer; the client may take what is left of it for so long, in ms. */
export function endWithin(res: ServerResponse, ms: number): void {
  if (res.closed) return
  const drop = setTimeout(() => res.destroy(), ms)
  res.once('close', () => clearTimeout(drop))
  res.end()
}

/** False when the client does not take what is there, has gone, or the signal aborted. */
function drained(res: ServerResponse, { stalledMs = STALLED_MS, signal }: Patience): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (isTaken: boolean) => () => {
      clearTimeout(timer)
      res.off('drain', drain)
      res.off('close', stop)
      signal?.removeEventListener('abort', stop)
      resolve(isTaken)
    }
    const drain = settle(true)
    const stop = settle(false)
    const timer = setTimeout(stop, stalledMs)
    res.on('drain', drain)
    res.on('close', stop)
    signal?.addEventListener('abort', stop)
    if (signal?.aborted || res.closed) stop()
  })
}
