import { characterStart } from '../../../../lib/utf8.ts'

/** Returns the first bytes of a text in UTF-8, up to a whole character. */
export function cutToBytes(text: string, maxBytes: number): string {
  // A UTF-16 unit has at least one byte in UTF-8, so the rest of a long text need not be encoded.
  const bytes = Buffer.from(text.slice(0, maxBytes + 1))
  if (bytes.length <= maxBytes) return bytes.toString()
  return bytes.subarray(0, characterStart(bytes, maxBytes)).toString()
}

const MAX_LINE_LENGTH = 1_000

/** Converts external text for use in a sentence: one line of at most 1,000 characters. */
export function toLine(text: string): string {
  const line = text
    .slice(0, 4 * MAX_LINE_LENGTH)
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
    .toWellFormed()
  return line.length <= MAX_LINE_LENGTH ? line : `${line.slice(0, MAX_LINE_LENGTH).toWellFormed()}…`
}
