const FENCE = '---'

/**
 * Returns the text of a SKILL.md below its front matter, without the line end after that. All of a text that has no
 * front matter, or one that does not end.
 */
export function bodyOf(skillMd: string): string {
  const text = skillMd.startsWith('\ufeff') ? skillMd.slice(1) : skillMd
  for (let start = 0; start < text.length; ) {
    const next = text.indexOf('\n', start) + 1 || text.length
    const isFence = text.startsWith(FENCE, start) && text.slice(start + FENCE.length, next).trim() === ''
    if (start === 0 && !isFence) return text
    if (start > 0 && isFence) return text.slice(next)
    start = next
  }
  return text
}
