import { invalid } from '../../errors.ts'
import { MAX_DEPTH } from './scan-yaml.ts'
import { toJson } from './write-yaml.ts'

export type Fields = Record<string, unknown>

/** Throws `invalid` for what is no JSON object, with the line where JSON.parse tells it. */
export function readJson(text: string): Fields {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw invalid(malformed(text, error instanceof Error ? error.message : ''))
  }
  if (!isMap(value)) throw invalid('The document is not a JSON object')
  checkDepth(value)
  return value
}

export const isMap = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * The front matter of a large agent, which is JSON so that no YAML has to be read. Undefined for anything that differs
 * in one character from how it would be written: it may hold what only a reader of YAML refuses, such as a key twice.
 */
export function readOwnJson(text: string): Fields | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    const fields = readJson(text)
    return toJson(fields) === text.trimEnd() ? fields : undefined
  } catch {
    return undefined
  }
}

function malformed(text: string, message: string): string {
  const line = lineOf(text, message)
  return `${line === undefined ? 'The document begins with { but' : `line ${line}: the document`} is not valid JSON`
}

/** The message has the line, or only what is around the place, which may be there more than once. */
function lineOf(text: string, message: string): number | undefined {
  const line = /\(line (\d+) column \d+\)$/.exec(message)?.[1]
  if (line !== undefined) return Number(line)
  if (message === 'Unexpected end of JSON input') return countLines(text.trimEnd())
  const around = /^Unexpected token .*?, \.\.\."(.*?)"(\.\.\.)? is not valid JSON$/s.exec(message)?.[1]
  const start = around === undefined ? -1 : text.indexOf(around)
  if (around === undefined || start === -1 || text.includes(around, start + 1)) return undefined
  return countLines(text.slice(0, start + CHARACTERS_BEFORE))
}

/** Of the place, in such a message. */
const CHARACTERS_BEFORE = 10

function countLines(text: string): number {
  let lines = 1
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', end + 1)) lines++
  return lines
}

/** Without recursion. */
function checkDepth(root: object): void {
  const left = [{ value: root, depth: 1 }]
  for (let item = left.pop(); item !== undefined; item = left.pop()) {
    if (item.depth > MAX_DEPTH) throw invalid(`The document is nested more than ${MAX_DEPTH} levels deep`)
    for (const value of Object.values(item.value)) {
      if (typeof value === 'object' && value !== null) left.push({ value, depth: item.depth + 1 })
    }
  }
}
