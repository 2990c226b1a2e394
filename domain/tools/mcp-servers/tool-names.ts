import { createHash } from 'node:crypto'
import type { ListedTool } from '../mcp/protocol/client.ts'

/** Model providers' maximum length of a tool's name. */
const MAX_NAME = 64
const MAX_SLUG = 32
/** Length of a long slug's beginning, which with its hash has `MAX_SLUG` characters. */
const SLUG_BEGINNING = 23
const HASH_DIGITS = 8
const LETTERS_HASH_DIGITS = 6

/** Letter or digit that a slug cannot have. */
const FOREIGN_LETTER = /(?!\p{ASCII})[\p{L}\p{N}]/u

const hashOf = (text: string, digits: number): string =>
  createHash('sha256').update(text).digest('hex').slice(0, digits)

/**
 * Returns the form of a server's name in its tools' names: 1 to 32 of [a-z0-9_-], without underscores at the edges or
 * two in a row. A hash of the name replaces lost letters.
 */
export function slugOf(name: string): string {
  const plain = trimmed(
    name
      .toLowerCase()
      .replace(/[^a-z0-9_-]+/g, '_')
      .replace(/_+/g, '_'),
  )
  const isLossy = plain === '' || FOREIGN_LETTER.test(name)
  const slug = isLossy ? [plain, hashOf(name, LETTERS_HASH_DIGITS)].filter(Boolean).join('_') : plain
  if (slug.length <= MAX_SLUG) return slug
  return `${trimmed(slug.slice(0, SLUG_BEGINNING))}_${hashOf(name, HASH_DIGITS)}`
}

const trimmed = (slug: string): string => slug.replace(/^_+|_+$/g, '')

/** Returns the name under which models know a server's tool: `mcp_<slug>__<tool>`, at most 64 of [A-Za-z0-9_-]. */
export function toolNameOf(slug: string, tool: string): string {
  const prefix = `mcp_${slug}__`
  const plain = tool.replace(/[^A-Za-z0-9_-]/g, '_')
  if (plain === tool && prefix.length + tool.length <= MAX_NAME) return prefix + tool
  const room = MAX_NAME - prefix.length - 1 - HASH_DIGITS
  return `${prefix}${plain.slice(0, room)}_${hashOf(tool, HASH_DIGITS)}`
}

/** Returns the slug of the server to whose tools the name belongs. Undefined for a name that no server's tool has. */
export const slugOfTool = (name: string): string | undefined => /^mcp_([a-z0-9_-]{1,32}?)__/.exec(name)?.[1]

/** Tools of a server under their names for models. `leftOut` are the tools whose names are taken. */
export type NamedTools<T> = { named: { name: string; tool: T }[]; leftOut: { name: string; reason: string }[] }

/** Names a server's tools. Of two with the same name, the first gets it. */
export function nameTools<T extends Pick<ListedTool, 'name'>>(slug: string, tools: T[]): NamedTools<T> {
  const byName = new Map<string, T>()
  const leftOut: NamedTools<T>['leftOut'] = []
  for (const tool of tools) {
    const name = toolNameOf(slug, tool.name)
    if (byName.has(name)) leftOut.push({ name: tool.name, reason: 'another tool has its name already' })
    else byName.set(name, tool)
  }
  return { named: [...byName].map(([name, tool]) => ({ name, tool })), leftOut }
}
