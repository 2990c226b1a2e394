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
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c

/** Number of bytes of a string that are read one by one before the rest of it is searched natively, at a higher price. */
const SHORT_STRING = 1024

/**
 * Counts the parts of a JSON text in its bytes, before anything is parsed: commas, colons and opening brackets outside
 * strings. Takes pieces of any length, and constant memory. Of a text that is not JSON the counts mean nothing.
 */
export function createJsonScan({ maxParts, maxDepth }: JsonBounds): JsonScan {
  const reached = { parts: 1, depth: 0, isInString: false, isEscaped: false }
  return {
    // One loop without calls and with local variables, because it runs once per byte.
    add(bytes) {
      let { parts, depth, isInString, isEscaped } = reached
      let stringAt = 0
      for (let at = 0; at < bytes.length; at++) {
        const byte = bytes[at]
        if (isInString) {
          if (isEscaped) isEscaped = false
          else if (byte === BACKSLASH) {
            isEscaped = true
            stringAt = at
          } else if (byte === QUOTE) isInString = false
          else if (at - stringAt > SHORT_STRING) {
            at = endOfPlainText(bytes, at) - 1
            stringAt = at
          }
        } else if (byte === QUOTE) {
          isInString = true
          stringAt = at
        } else if (byte === COMMA || byte === COLON) {
          if (++parts > maxParts) return 'parts'
        } else if (byte === 0x5b || byte === 0x7b) {
          if (++depth > maxDepth) return 'depth'
          if (++parts > maxParts) return 'parts'
        } else if (byte === 0x5d || byte === 0x7d) depth--
      }
      Object.assign(reached, { parts, depth, isInString, isEscaped })
      return undefined
    },
  }
}

/** Returns the place of the next quote or backslash, or the end. */
function endOfPlainText(bytes: Uint8Array, from: number): number {
  const quote = bytes.indexOf(QUOTE, from)
  const end = quote === -1 ? bytes.length : quote
  const backslash = bytes.subarray(from, end).indexOf(BACKSLASH)
  return backslash === -1 ? end : from + backslash
}
