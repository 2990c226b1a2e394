import type { ServerResponse } from 'node:http'

/**
 * Size of the pieces that a longer text is split into. Node reports progress per write only: all of it was taken, or
 * nothing.
 */
const PIECE_BYTES = 128 * 1024
/**
 * Time in ms in which a client must take a piece; a slower client counts as stalled. The system's buffer for a connection
 * grows to some megabytes, and takes a piece when a third of it is free: a line of 11 KB/s is fast enough.
 */
export const STALLED_MS = 120_000

export type Patience = {
  stalledMs?: number
  /** Stops the waiting for the client when it aborts. */
  signal?: AbortSignal | undefined
  /** Reports whether a text already begun is still finished when the signal aborts with this reason. */
  isPatient?: (reason: unknown) => boolean
}

/**
 * Writes as fast as the client takes it, so that no more than `text` is buffered. Returns false when the client stalls
 * or disconnects, or when the signal aborts. The rest is still handed to the socket: whatever followed half a frame
 * would be read as its other half.
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

/** Ends an answer. The client has `ms` to take the rest of it. */
export function endWithin(res: ServerResponse, ms: number): void {
  if (res.closed) return
  const drop = setTimeout(() => res.destroy(), ms)
  res.once('close', () => clearTimeout(drop))
  res.end()
}

/**
 * Waits until the socket has drained. Returns false when the client stalls or disconnects, or when the signal aborts.
 */
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
