export type JsonBounds = {
  /** Maximum number of values and keys. A key counts like a value, because it costs as much. */
  maxParts: number
  maxDepth: number
}

/** Bound that a text exceeds. */
export type JsonExcess = 'parts' | 'depth'

export type JsonScan = {
  /** Takes the next bytes, and returns the bound that the text exceeds by now. */
  add(bytes: Uint8Array): JsonExcess | undefined
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Meaning of each byte outside strings, so that most bytes need no comparison. */
const KINDS = new Uint8Array(256)
const PART = 1
const OPENING = 2
const CLOSING = 3
for (const [characters, kind] of [
  [',:', PART],
  ['[{', OPENING],
  [']}', CLOSING],
  ['"', QUOTE],
] as const) {
  for (const character of characters) KINDS[character.charCodeAt(0)] = kind
}

/** Number of bytes of a string that are read one by one before the rest of it is searched natively, at a higher price. */
const SHORT_STRING = 1024
/** Number of bytes that are searched at once. */
const SEARCHED_BYTES = 64 * 1024

/**
 * Counts the parts of a JSON text in its bytes, before anything is parsed: commas, colons and opening brackets outside
 * strings. Takes pieces of any length, and constant memory. Of a text that is not JSON the counts mean nothing.
 */
export function createJsonScan({ maxParts, maxDepth }: JsonBounds): JsonScan {
  let parts = 1
  let depth = 0
  const text = { isOpen: false, isEscaped: false }
  return {
    add(bytes) {
      const { length } = bytes
      for (let at = text.isOpen ? skipText(bytes, 0, text) : 0; at < length; at++) {
        const kind = KINDS[bytes[at] as number]
        if (kind === 0) continue
        if (kind === QUOTE) at = skipText(bytes, at + 1, text) - 1
        else if (kind === CLOSING) depth--
        else {
          if (kind === OPENING && ++depth > maxDepth) return 'depth'
          if (++parts > maxParts) return 'parts'
        }
      }
      return undefined
    },
  }
}

/** Returns the place after the string's closing quote. `text` says whether it has one, and whether an escape is open. */
function skipText(bytes: Uint8Array, from: number, text: { isOpen: boolean; isEscaped: boolean }): number {
  let at = text.isEscaped ? from + 1 : from
  let searchAt = at + SHORT_STRING
  for (; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) {
      text.isOpen = false
      text.isEscaped = false
      return at + 1
    }
    if (byte === BACKSLASH) {
      at++
      searchAt = at + SHORT_STRING
    } else if (at > searchAt) {
      at = endOfPlainText(bytes, at) - 1
      searchAt = at + SHORT_STRING
    }
  }
  text.isOpen = true
  text.isEscaped = at > bytes.length
  return bytes.length
}

/**
 * Returns the place of the next quote or backslash, or the end of the part that is searched at once. That is bounded: a
 * search for a quote far away, repeated after each backslash, would take quadratic time.
 */
function endOfPlainText(bytes: Uint8Array, from: number): number {
  const part = bytes.subarray(from, from + SEARCHED_BYTES)
  const quote = part.indexOf(QUOTE)
  const backslash = part.indexOf(BACKSLASH)
  if (quote === -1 && backslash === -1) return from + part.length
  return from + Math.min(quote === -1 ? part.length : quote, backslash === -1 ? part.length : backslash)
}
