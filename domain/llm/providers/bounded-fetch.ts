import { ModelError } from '../model.ts'

const MiB = 1024 * 1024
/** Longest line of a stream. Some protocols repeat the whole answer in its last event. */
const MAX_LINE_BYTES = 32 * MiB
/** Longest stream. An event has some 300 bytes for each token, and no model answers with a million of them. */
const MAX_STREAM_BYTES = 256 * MiB

/** Adds limits to the streams that a `fetch` answers with. Others are errors, which the SDK reads with a limit of its own. */
export const boundedFetch =
  (fetch: typeof globalThis.fetch): typeof globalThis.fetch =>
  async (input, init) => {
    const response = await fetch(input, init)
    return response.ok && response.body !== null
      ? new Response(response.body.pipeThrough(limitBytes()), response)
      : response
  }

function limitBytes(): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let streamBytes = 0
  let lineBytes = 0
  return new TransformStream({
    transform(chunk, controller) {
      const end = Math.max(chunk.lastIndexOf(0x0a), chunk.lastIndexOf(0x0d))
      lineBytes = end < 0 ? lineBytes + chunk.length : chunk.length - end - 1
      streamBytes += chunk.length
      if (lineBytes > MAX_LINE_BYTES || streamBytes > MAX_STREAM_BYTES) {
        throw new ModelError('The answer of the model is too long.', { retryable: false })
      }
      controller.enqueue(chunk)
    },
  })
}
