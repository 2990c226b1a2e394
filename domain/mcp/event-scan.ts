const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Bytes that begin a value or a key outside strings: [ { , : */
const BEGINNINGS: ReadonlySet<number> = new Set([0x5b, 0x7b, 0x2c, 0x3a])
const OPENINGS: ReadonlySet<number> = new Set([0x5b, 0x7b])
const CLOSINGS: ReadonlySet<number> = new Set([0x5d, 0x7d])

export type EventBounds = { maxParts: number; maxDepth: number; maxLines: number }

/**
 * Counts the lines of a stream of events, and the parts of the JSON in each event, before anything is parsed. A string
 * ends with its line, because JSON has no line breaks in strings: so nothing outside of JSON can hide what follows.
 */
export function createEventScan({ maxParts, maxDepth, maxLines }: EventBounds) {
  let lines = 0
  let parts = 0
  let depth = 0
  let isInString = false
  let isEscaped = false
  let isLineEmpty = true

  function endLine(): void {
    lines++
    isInString = false
    isEscaped = false
    if (isLineEmpty) {
      parts = 0
      depth = 0
    }
    isLineEmpty = true
  }

  function addToString(byte: number): void {
    if (isEscaped) isEscaped = false
    else if (byte === BACKSLASH) isEscaped = true
    else if (byte === QUOTE) isInString = false
  }

  function addOutside(byte: number): void {
    if (byte === QUOTE) isInString = true
    else if (BEGINNINGS.has(byte)) parts++
    if (OPENINGS.has(byte)) depth++
    else if (CLOSINGS.has(byte)) depth--
  }

  return {
    /** Takes the next bytes, and returns whether the stream exceeds its bounds by now. */
    exceeds(bytes: Uint8Array): boolean {
      for (const byte of bytes) {
        if (byte === LINE_FEED || byte === CARRIAGE_RETURN) {
          endLine()
          continue
        }
        isLineEmpty = false
        if (isInString) addToString(byte)
        else addOutside(byte)
        if (depth > maxDepth) return true
      }
      return lines > maxLines || parts > maxParts
    },
  }
}
