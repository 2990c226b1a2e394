import { characterStart } from '../../../../../lib/utf8.ts'

/** Requested lines of a text: the first, counted from 1, and their number. */
type Wanted = { first: number; limit: number; maxBytes: number }

/** Unchanged lines of a text, with line ends. `isCut`: only the beginning of a single line that is too long. */
export type TextLines = { content: string; lines: number; totalLines: number; isCut: boolean }

const LINE_FEED = 10

/**
 * Returns lines of a text in UTF-8, up to `maxBytes` of JSON with its escapes, as in a result. Undefined if the text
 * has no such line. An empty text has no lines.
 */
export function takeLines(bytes: Buffer, { first, limit, maxBytes }: Wanted): TextLines | undefined {
  let line = 1
  let start = first === 1 ? 0 : undefined
  let end = bytes.length
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] !== LINE_FEED) continue
    line++
    if (line === first) start = at + 1
    if (line === first + limit) end = at + 1
  }
  const totalLines = bytes.length === 0 || bytes.at(-1) === LINE_FEED ? line - 1 : line
  if (start === undefined || first > Math.max(totalLines, 1)) return undefined
  // A few more bytes than fit, so that a text cut here is certainly too long.
  const text = bytes.toString('utf8', start, characterStart(bytes, Math.min(end, start + maxBytes + 4)))
  return { ...keepWhatFits(text, maxBytes), totalLines }
}

/** Returns the whole lines that fit, or the beginning of a first line that does not fit. */
function keepWhatFits(text: string, maxBytes: number): Omit<TextLines, 'totalLines'> {
  let size = 0
  let at = 0
  let lineEnd = 0
  let lines = 0
  for (const character of text) {
    size += jsonBytesOf(character.codePointAt(0) ?? 0)
    if (size > maxBytes) {
      if (lines === 0) return { content: text.slice(0, at), lines: 1, isCut: true }
      return { content: text.slice(0, lineEnd), lines, isCut: false }
    }
    at += character.length
    if (character !== '\n') continue
    lineEnd = at
    lines++
  }
  return { content: text, lines: lineEnd < at ? lines + 1 : lines, isCut: false }
}

/** Returns the maximum number of bytes of a character in JSON. */
function jsonBytesOf(code: number): number {
  if (code === 0x22 || code === 0x5c || code === 0x0a || code === 0x0d || code === 0x09) return 2
  if (code < 0x20) return 6
  if (code < 0x80) return 1
  if (code < 0x800) return 2
  return code < 0x10000 ? 3 : 4
}
