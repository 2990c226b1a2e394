import { ModelError } from '../model.ts'

const MiB = 1024 * 1024
/** Longest line of a stream, which a parser keeps whole. Some protocols repeat the whole answer in their last event. */
const MAX_LINE_BYTES = 8 * MiB
/** Length up to which a line is an ordinary one, which does not count against the lines of other answers. */
const ORDINARY_BYTES = MiB
/** Size limit of all longer lines that are being read at once. */
const MAX_LONG_BYTES = 128 * MiB

type Bytes = Uint8Array<ArrayBuffer>

/**
 * Adds limits to the lines of the streams that `fetch` answers with: to each, and to all long ones together. Other
 * answers are errors and lists, which their readers limit.
 */
export function boundLines(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  let longBytes = 0
  const limitLines = () => {
    let lineBytes = 0
    const become = (bytes: number) => {
      longBytes += excess(bytes) - excess(lineBytes)
      lineBytes = bytes
    }
    return new TransformStream<Bytes, Bytes>({
      transform(chunk, controller) {
        const end = Math.max(chunk.lastIndexOf(0x0a), chunk.lastIndexOf(0x0d))
        become(end < 0 ? lineBytes + chunk.length : chunk.length - end - 1)
        const problem = problemOf(lineBytes, longBytes)
        if (problem !== undefined) {
          become(0)
          throw problem
        }
        controller.enqueue(chunk)
      },
      flush: () => become(0),
      cancel: () => become(0),
    })
  }
  return async (input, init) => {
    const response = await fetch(input, init)
    return response.ok && response.body !== null
      ? new Response(response.body.pipeThrough(limitLines()), response)
      : response
  }
}

const excess = (bytes: number): number => Math.max(0, bytes - ORDINARY_BYTES)

function problemOf(lineBytes: number, longBytes: number): ModelError | undefined {
  if (lineBytes > MAX_LINE_BYTES) return new ModelError('The answer of the model is too long.', { retryable: false })
  if (longBytes <= MAX_LONG_BYTES || lineBytes <= ORDINARY_BYTES) return undefined
  return new ModelError('Too many long answers are being read at once.', { retryable: true })
}
