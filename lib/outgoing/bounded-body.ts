import type { ReadableStream as WebStream } from 'node:stream/web'
import { OutgoingError } from './outgoing-error.ts'

type BodyLimits = { maxBytes: number; idleTimeoutMs: number }

/**
 * Passes a body on chunk by chunk, as it is read, and ends it with an `OutgoingError` when it is too large, silent or
 * broken. Ends it with the signal's reason when `signal` has aborted it.
 */
export function boundBody(
  body: WebStream<Uint8Array<ArrayBuffer>>,
  { maxBytes, idleTimeoutMs }: BodyLimits,
  signal: AbortSignal | null | undefined,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader()
  let length = 0
  const readChunk = async () => {
    try {
      return await reader.read()
    } catch (error) {
      signal?.throwIfAborted()
      throw bodyError(error, idleTimeoutMs)
    }
  }
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await readChunk()
        if (done) return controller.close()
        length += value.length
        if (length <= maxBytes) return controller.enqueue(value)
        const error = new OutgoingError('too_large', `The answer has more than ${maxBytes} bytes.`)
        await reader.cancel(error)
        throw error
      },
      cancel: (reason) => reader.cancel(reason),
    },
    // Nothing is read ahead.
    { highWaterMark: 0 },
  )
}

function bodyError(error: unknown, idleTimeoutMs: number): OutgoingError {
  const cause = error instanceof TypeError ? (error.cause ?? error) : error
  if (typeof cause === 'object' && cause !== null && 'code' in cause && cause.code === 'UND_ERR_BODY_TIMEOUT') {
    return new OutgoingError('timeout', `The answer paused for more than ${idleTimeoutMs / 1000} s.`, { cause })
  }
  return new OutgoingError('unreadable', 'The answer broke off or could not be unpacked.', { cause })
}
