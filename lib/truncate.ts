/** How much of a text stands in previews and summaries. */
const PREVIEW_CHARACTERS = 200

/** The first characters of a text, whole ones. */
export const truncate = (text: string): string =>
  // A character is at most two UTF-16 units, so the rest of a long text need not be taken apart.
  [...text.slice(0, 2 * PREVIEW_CHARACTERS)].slice(0, PREVIEW_CHARACTERS).join('')
