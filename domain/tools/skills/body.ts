import { splitFrontMatter } from '../../kit/yaml/front-matter.ts'

/** Returns the text of a SKILL.md below its front matter, or the whole text if front matter is absent or unclosed. */
export function bodyOf(skillMd: string): string {
  const text = skillMd.replace(/^\ufeff/, '')
  const split = splitFrontMatter(text)
  return typeof split === 'string' ? text : split.body
}
