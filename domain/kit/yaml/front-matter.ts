const OPENING = /^---[ \t]*\r?(?:\n|$)/
const CLOSING = /(?<=^|\n)---[ \t]*\r?(?:\n|$)/

/** Text that begins with front matter: its YAML, which begins on line 2, and what follows. */
export type FrontMatter = { yaml: string; body: string }

/**
 * Splits a text into front matter, between two lines of `---`, and its body. 'none' if the text does not begin with
 * such a line, 'unclosed' if the second is missing. The caller has removed a byte order mark.
 */
export function splitFrontMatter(text: string): FrontMatter | 'none' | 'unclosed' {
  const opening = OPENING.exec(text)
  if (opening === null) return 'none'
  const rest = text.slice(opening[0].length)
  const closing = CLOSING.exec(rest)
  if (closing === null) return 'unclosed'
  return { yaml: rest.slice(0, closing.index), body: rest.slice(closing.index + closing[0].length) }
}
