import { isRecord } from '../../../lib/is-record.ts'
import { createJsonScan } from '../../../lib/json-scan.ts'
import { invalid } from '../../kit/errors.ts'
import { MAX_DEPTH } from '../../kit/yaml/scan.ts'
import { toJson } from './write-yaml.ts'

export type Fields = Record<string, unknown>

/** Maximum number of values and keys. More than a request may have, so that every exported agent can be imported. */
const MAX_PARTS = 60_000

/** Parses a JSON object. Throws `invalid` for anything else, with the line where JSON.parse reports it. */
export function readJson(text: string): Fields {
  checkSize(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw invalid(malformed(text, error instanceof Error ? error.message : ''))
  }
  if (!isRecord(value)) throw invalid('The document is not a JSON object')
  return value
}

/**
 * Reads the front matter of a large agent, which is JSON to avoid slow YAML parsing. Returns undefined unless the text
 * is exactly as this service would write it: other text may contain errors that only a YAML reader refuses, such as
 * duplicate keys.
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

/**
 * Returns the line that a message of JSON.parse refers to. The message has the line, or an excerpt around the place. If
 * the excerpt occurs more than once, returns undefined.
 */
function lineOf(text: string, message: string): number | undefined {
  const line = /\(line (\d+) column \d+\)$/.exec(message)?.[1]
  if (line !== undefined) return Number(line)
  if (message === 'Unexpected end of JSON input') return countLines(text.trimEnd())
  const around = /^Unexpected token .*?, \.\.\."(.*?)"(\.\.\.)? is not valid JSON$/s.exec(message)?.[1]
  const start = around === undefined ? -1 : text.indexOf(around)
  if (around === undefined || start === -1 || text.includes(around, start + 1)) return undefined
  return countLines(text.slice(0, start + CHARACTERS_BEFORE))
}

/** Number of characters that the excerpt shows before the place. */
const CHARACTERS_BEFORE = 10

function countLines(text: string): number {
  let lines = 1
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', end + 1)) lines++
  return lines
}

/** Throws `invalid` for too many parts or too deep nesting, before anything is parsed. */
function checkSize(text: string): void {
  const excess = createJsonScan({ maxParts: MAX_PARTS, maxDepth: MAX_DEPTH }).add(new TextEncoder().encode(text))
  if (excess === 'parts') throw invalid(`The document has more than ${MAX_PARTS} values and keys`)
  if (excess === 'depth') throw invalid(`The document is nested more than ${MAX_DEPTH} levels deep`)
}
