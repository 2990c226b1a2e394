export type Given = Record<string, unknown>

/** Arguments of a call as people read them. `others` are the arguments that the shape does not show. */
export type Shape =
  /** Whole content of a file. */
  | { kind: 'file'; path: string; text: string; others: Given }
  /** Piece of a file, and what takes its place. */
  | { kind: 'edit'; path: string; before: string; after: string; others: Given }
  | { kind: 'sql'; database: string | undefined; text: string; others: Given }
  | { kind: 'command'; text: string; others: Given }
  /** Single text. */
  | { kind: 'text'; name: string; text: string }
  | { kind: 'values'; others: Given }

const PATHS = ['path', 'file_path', 'filepath', 'file', 'filename']
const CONTENTS = ['content', 'contents', 'file_text']
const OLD = ['old_text', 'old_string', 'old_str']
const NEW = ['new_text', 'new_string', 'new_str']
const COMMANDS = ['command', 'cmd', 'script']
const STATEMENTS = ['sql', 'statement']
const QUERIES = ['query']

/**
 * Returns how to show the arguments of a call. They are told by their names, so that tools of MCP servers and clients are
 * read like the service's own.
 */
export function shapeOf(tool: string, given: Given): Shape {
  const rest = { ...given }
  const has = (names: string[]) => names.some((name) => typeof given[name] === 'string')
  const take = (names: string[]): string => {
    const name = names.find((one) => typeof rest[one] === 'string') ?? ''
    const text = String(rest[name] ?? '')
    delete rest[name]
    return text
  }
  if (has(PATHS) && has(OLD) && has(NEW))
    return { kind: 'edit', path: take(PATHS), before: take(OLD), after: take(NEW), others: rest }
  if (has(PATHS) && has(CONTENTS) && given.encoding !== 'base64') {
    // The default, and nothing to read.
    if (rest.encoding === 'text') delete rest.encoding
    return { kind: 'file', path: take(PATHS), text: take(CONTENTS), others: rest }
  }
  const statements = /sql|database/i.test(tool) ? [...STATEMENTS, ...QUERIES] : STATEMENTS
  if (has(statements)) {
    const text = take(statements)
    return { kind: 'sql', database: take(['database', 'db']) || undefined, text, others: rest }
  }
  if (has(COMMANDS)) return { kind: 'command', text: take(COMMANDS), others: rest }
  const [first, ...others] = Object.entries(given)
  if (others.length === 0 && typeof first?.[1] === 'string') return { kind: 'text', name: first[0], text: first[1] }
  return { kind: 'values', others: rest }
}
