import { splitFrontMatter } from '../../kit/yaml/front-matter.ts'

/** Returns the text of a SKILL.md below its front matter. All of a text that has none, or one that does not end. */
export function bodyOf(skillMd: string): string {
  const text = skillMd.replace(/^\ufeff/, '')
  const split = splitFrontMatter(text)
  return typeof split === 'string' ? text : split.body
}
