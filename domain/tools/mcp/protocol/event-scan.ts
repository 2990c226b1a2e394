const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const QUOTE = 1
const BACKSLASH = 2
const LINE_END = 3
const PART = 4
const OPENING = 5
const CLOSING = 6
/** Meaning of each byte, so that most bytes need no comparison. */
const KINDS = new Uint8Array(256)
for (const [characters, kind] of [
  ['"', QUOTE],
  ['\\', BACKSLASH],
  ['\r\n', LINE_END],
  [',:', PART],
  ['[{', OPENING],
  [']}', CLOSING],
] as const) {
  for (const character of characters) KINDS[character.charCodeAt(0)] = kind
}

export type EventBounds = { maxParts: number; maxDepth: number; maxLines: number }

/**
 * Counts the lines of a stream of events, and the parts of the JSON in each event, before anything is parsed. A string
 * ends with its line, because JSON strings have no line breaks: text outside of JSON cannot hide what follows.
 */
export function createEventScan({ maxParts, maxDepth, maxLines }: EventBounds) {
  let lines = 0
  let parts = 0
  let depth = 0
  let isInString = false
  let isEscaped = false
  let isLineEmpty = true
  let previous = 0

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

  function addToString(kind: number): void {
    if (isEscaped) isEscaped = false
    else if (kind === BACKSLASH) isEscaped = true
    else if (kind === QUOTE) isInString = false
  }

  function addOutside(kind: number): void {
    if (kind === QUOTE) isInString = true
    else if (kind === CLOSING) depth = Math.max(0, depth - 1)
    else if (kind === PART || kind === OPENING) parts++
    if (kind === OPENING) depth++
  }

  return {
    /** Scans the next bytes, and returns whether the stream exceeds its bounds. */
    exceeds(bytes: Uint8Array): boolean {
      for (const byte of bytes) {
        const kind = KINDS[byte] ?? 0
        // The two end one line together.
        const isRest = byte === LINE_FEED && previous === CARRIAGE_RETURN
        previous = byte
        if (isRest) continue
        if (kind === LINE_END) endLine()
        else isLineEmpty = false
        if (isInString) addToString(kind)
        else if (kind !== 0) addOutside(kind)
        if (depth > maxDepth) return true
      }
      return lines > maxLines || parts > maxParts
    },
  }
}
