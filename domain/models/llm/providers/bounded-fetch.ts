import { answerTooLong, MAX_CALLS, ModelError, tooManyCalls } from '../model.ts'
import { type BodyMap, mapBody } from './map-body.ts'

const MiB = 1024 * 1024
/** Maximum length of a line, which parsers keep whole. Some protocols repeat the whole answer in their last event. */
const MAX_LINE_BYTES = 8 * MiB
/** Maximum length of an ordinary line, which does not count towards MAX_LONG_BYTES. */
const ORDINARY_BYTES = MiB
/** Minimum length of a line whose calls are counted before it is parsed. Shorter lines cannot have too many. */
const COUNTED_BYTES = 64 * 1024
/**
 * Beginning of a call in any protocol's line, sometimes more than once per call. In a text, a backslash precedes the
 * quote.
 */
const CALL = Buffer.from('"function')
const MAX_CALL_WORDS = 8 * MAX_CALLS
const BACKSLASH = 0x5c
/** Maximum total size of the longer lines being read at once. */
const MAX_LONG_BYTES = 128 * MiB

/**
 * Limits the lines of the streams that `fetch` returns: each line, and all long lines together. Other answers are
 * errors and lists, which their readers limit.
 */
export function boundLines(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  let longBytes = 0
  const limitLines = (): BodyMap => {
    let lineBytes = 0
    let callWords = 0
    const become = (bytes: number) => {
      longBytes += excess(bytes) - excess(lineBytes)
      lineBytes = bytes
    }
    return {
      piece: (bytes) => {
        const end = Math.max(bytes.lastIndexOf(0x0a), bytes.lastIndexOf(0x0d))
        const begun = end < 0 ? lineBytes + bytes.length : bytes.length - end - 1
        if (lineBytes + bytes.length > COUNTED_BYTES) callWords += countCalls(bytes)
        if (callWords > MAX_CALL_WORDS) throw tooManyCalls()
        if (end >= 0) callWords = 0
        become(begun)
        const problem = problemOf(lineBytes, longBytes)
        if (problem !== undefined) throw problem
        return bytes
      },
      over: () => become(0),
    }
  }
  return async (input, init) => {
    const response = await fetch(input, init)
    return response.ok && response.body !== null
      ? new Response(mapBody(response.body, limitLines()), response)
      : response
  }
}

const excess = (bytes: number): number => Math.max(0, bytes - ORDINARY_BYTES)

function problemOf(lineBytes: number, longBytes: number): ModelError | undefined {
  if (lineBytes > MAX_LINE_BYTES) return answerTooLong()
  if (longBytes <= MAX_LONG_BYTES || lineBytes <= ORDINARY_BYTES) return undefined
  return new ModelError('Too many long answers are being read at once.', { retryable: true })
}

/** Counts the words that begin a call, except a word that is split between two pieces. */
function countCalls(bytes: Uint8Array): number {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let count = 0
  for (let at = buffer.indexOf(CALL); at >= 0 && count <= MAX_CALL_WORDS; at = buffer.indexOf(CALL, at + CALL.length)) {
    if (buffer[at - 1] !== BACKSLASH) count++
  }
  return count
}
