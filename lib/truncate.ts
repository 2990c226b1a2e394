/** Returns the first UTF-16 code units of a text, without half of a surrogate pair. */
export function cutAt(text: string, length: number): string {
  const cut = text.slice(0, length)
  return text.length > length && /[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut
}

/** Length of a text in previews and summaries. */
const PREVIEW_CHARACTERS = 200

/** Returns the first characters of a text without splitting a surrogate pair. */
export const truncate = (text: string): string =>
  // A character has at most two UTF-16 units, so the rest of a long text need not be split into characters.
  [...text.slice(0, 2 * PREVIEW_CHARACTERS)].slice(0, PREVIEW_CHARACTERS).join('')
