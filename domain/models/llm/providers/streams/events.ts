import { answerTooLong, MAX_CALLS, ModelError, tooManyCalls } from '../../model.ts'

const MiB = 1024 * 1024
/** Maximum length of a line. Some protocols repeat the whole answer in their last event. */
const MAX_LINE_BYTES = 8 * MiB
/** Maximum length of an ordinary line, which does not count towards MAX_LONG_BYTES. */
const ORDINARY_BYTES = MiB
/** Maximum total size of the longer lines that the process reads at once. */
const MAX_LONG_BYTES = 128 * MiB
/** Minimum length of a line whose calls are counted before it is parsed. Shorter lines cannot have too many. */
const COUNTED_BYTES = 64 * 1024
/**
 * Beginning of a call in any protocol's line, sometimes more than once per call. In a text, a backslash precedes the
 * quote.
 */
const CALL = Buffer.from('"function')
const MAX_CALL_WORDS = 8 * MAX_CALLS
const BACKSLASH = 0x5c

/** Bytes beyond ORDINARY_BYTES of all lines that the process is reading. */
let longBytes = 0

/** Reads the data of server-sent events from the bytes of a stream. */
export type EventReader = {
  /** Returns the data of the events that a piece of the stream completes. Throws `ModelError` beyond the limits. */
  read(piece: Uint8Array): string[]
  /** Returns the data of an event whose lines are complete when the stream ends. */
  end(): string[]
  /** Has to be called when nothing more is read. */
  close(): void
}

/**
 * Creates a reader of one stream (WHATWG HTML, 9.2.6), which ignores all fields but `data`. It looks at each byte once,
 * however small the pieces are.
 */
export function createEventReader(): EventReader {
  const decoder = new TextDecoder()
  const limits = createLimits()
  /** The line that has begun. */
  let begun: string[] = []
  let endsWithCr = false
  let data: string | undefined

  const readLine = (line: string, events: string[]) => {
    if (line === '') {
      if (data !== undefined) events.push(data)
      data = undefined
    } else if (line === 'data' || line.startsWith('data:')) {
      const value = line.slice(line[5] === ' ' ? 6 : 5)
      data = data === undefined ? value : `${data}\n${value}`
    }
  }
  return {
    read: (piece) => {
      limits.check(piece)
      let text = decoder.decode(piece, { stream: true })
      // The second half of a line's end.
      const isHalf = endsWithCr && text.startsWith('\n')
      if (isHalf) text = text.slice(1)
      if (isHalf || text !== '') endsWithCr = text.endsWith('\r')
      const events: string[] = []
      const end = Math.max(text.lastIndexOf('\n'), text.lastIndexOf('\r')) + 1
      if (end === 0) {
        begun.push(text)
        return events
      }
      const lines = (begun.join('') + text.slice(0, end)).split(/\r\n|\n|\r/)
      begun = [lines.pop() + text.slice(end)]
      for (const line of lines) readLine(line, events)
      return events
    },
    end: () => (data === undefined ? [] : [data]),
    close: limits.close,
  }
}

/** Limits the line that is being read, and all long lines of the process together. */
function createLimits() {
  let lineBytes = 0
  let callWords = 0
  const become = (bytes: number) => {
    longBytes += excess(bytes) - excess(lineBytes)
    lineBytes = bytes
  }
  return {
    check: (piece: Uint8Array) => {
      const end = Math.max(piece.lastIndexOf(0x0a), piece.lastIndexOf(0x0d))
      if (lineBytes + piece.length > COUNTED_BYTES) callWords += countCalls(piece)
      if (callWords > MAX_CALL_WORDS) throw tooManyCalls()
      if (end >= 0) callWords = 0
      become(end < 0 ? lineBytes + piece.length : piece.length - end - 1)
      if (lineBytes > MAX_LINE_BYTES) throw answerTooLong()
      if (longBytes > MAX_LONG_BYTES && lineBytes > ORDINARY_BYTES) {
        throw new ModelError('Too many long answers are being read at once.', { retryable: true })
      }
    },
    close: () => become(0),
  }
}

const excess = (bytes: number): number => Math.max(0, bytes - ORDINARY_BYTES)

/** Counts the words that begin a call, except a word that is split between two pieces. */
function countCalls(piece: Uint8Array): number {
  const buffer = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)
  let count = 0
  for (let at = buffer.indexOf(CALL); at >= 0 && count <= MAX_CALL_WORDS; at = buffer.indexOf(CALL, at + CALL.length)) {
    if (buffer[at - 1] !== BACKSLASH) count++
  }
  return count
}
