import { YAML_TYPES } from '../../../contract/agents.ts'
import { isRecord } from '../../../lib/is-record.ts'
import { invalid, tooMany } from '../../errors.ts'
import { type Fields, readJson, readOwnJson } from './read-json.ts'
import type { YamlAnswer } from './read-yaml.ts'
import type { DocumentThreads } from './threads.ts'

const FIELDS = [
  'id',
  'name',
  'description',
  'system_prompt',
  'default_model_id',
  'tags',
  'capabilities',
  'tools',
] as const

/** Fields that a document gives for an agent. The contract validates their values. */
export type AgentDocument = { [key in (typeof FIELDS)[number]]?: unknown } & { system_prompt: unknown }

/** CPU time that a document may take, in ms. */
const TIME_LIMIT_MS = 2000

const OPENING = /^---[ \t]*\r?(?:\n|$)/
const CLOSING = /(?<=^|\n)---[ \t]*\r?(?:\n|$)/
/**
 * Patterns of a YAML map of an agent: its first line and its keys. Most prose does not match them, and need not be read
 * as YAML.
 */
const FIRST_LINE = /(?:^|\n)(?![ \t\r]*(?:#|\n|$)|---|%)([^\n]+)/
const KEY_OR_BRACE = /^\s*[?{]|:(\s|$)/
const AGENT_KEY = /^(["']?)(name|system_prompt)\1[ \t]*:/m

/**
 * Reads an agent from Markdown with YAML front matter, JSON, YAML, or a text that is its prompt. Throws `invalid` for a
 * malformed document, with the line, and for one without a prompt; `too_many` when the service is busy with other
 * documents.
 */
export async function parseAgentDocument(
  threads: DocumentThreads,
  text: string,
  contentType: string | undefined,
): Promise<AgentDocument> {
  const type = contentType?.split(';')[0]?.trim().toLowerCase()
  const fields = await readFields(threads, text.replace(/^\ufeff/, ''), type)
  const known = FIELDS.filter((field) => Object.hasOwn(fields, field) && fields[field] !== undefined)
  const { system_prompt, ...rest }: Fields = Object.fromEntries(known.map((field) => [field, fields[field]]))
  if (system_prompt === undefined || system_prompt === null || system_prompt === '') {
    throw invalid('system_prompt: must not be empty')
  }
  if (Array.isArray(rest.capabilities)) rest.capabilities = rest.capabilities.map(withRef)
  return { ...rest, system_prompt }
}

const withRef = (capability: unknown): unknown => (typeof capability === 'string' ? { ref: capability } : capability)

async function readFields(threads: DocumentThreads, text: string, type: string | undefined): Promise<Fields> {
  if (type === 'application/json') return readJson(text)
  const isYaml = type !== undefined && YAML_TYPES.includes(type)
  const opening = OPENING.exec(text)
  if (opening !== null) return readFrontMatter(threads, text, opening[0].length, isYaml)
  if (!/^\s*\{/.test(text)) return readYamlOrProse(threads, text, isYaml)
  return isYaml ? readYamlMap(threads, text, 0) : readJson(text)
}

/** Reads front matter and the text that follows it. `start` is the offset of the line after the opening one. */
async function readFrontMatter(
  threads: DocumentThreads,
  text: string,
  start: number,
  isYaml: boolean,
): Promise<Fields> {
  const rest = text.slice(start)
  const closing = CLOSING.exec(rest)
  if (closing === null) {
    // In plain YAML the line only marks the start of a document.
    if (isYaml) return readYamlMap(threads, text, 0)
    throw invalid('line 1: the front matter is not closed; it ends with a line that is ---')
  }
  const fields = await readYamlMap(threads, rest.slice(0, closing.index), 1)
  const body = rest.slice(closing.index + closing[0].length).trim()
  return body === '' ? fields : { ...fields, system_prompt: body }
}

async function readYamlMap(threads: DocumentThreads, text: string, linesBefore: number): Promise<Fields> {
  if (text.trim() === '') return {}
  const own = readOwnJson(text)
  if (own !== undefined) return own
  const answer = await readYaml(threads, text)
  if ('problem' in answer) throw invalid(`line ${linesBefore + answer.line}: ${answer.problem}`)
  const { value } = answer
  if (value === null) return {}
  if (!isRecord(value)) throw invalid(`line ${linesBefore + answer.line}: this is not a map of keys and values`)
  return value
}

async function readYamlOrProse(threads: DocumentThreads, text: string, isYaml: boolean): Promise<Fields> {
  const prose = { system_prompt: text.trim() === '' ? '' : text }
  if (!isYaml && !mayBeAgent(text)) return prose
  const answer = await readYaml(threads, text)
  if ('problem' in answer) {
    if (isYaml || answer.isAgent) throw invalid(`line ${answer.line}: ${answer.problem}`)
    return prose
  }
  const { value } = answer
  return isRecord(value) && (Object.hasOwn(value, 'name') || Object.hasOwn(value, 'system_prompt')) ? value : prose
}

function mayBeAgent(text: string): boolean {
  const first = FIRST_LINE.exec(text)?.[1] ?? ''
  return KEY_OR_BRACE.test(first) && (first.trimStart().startsWith('{') || AGENT_KEY.test(text))
}

async function readYaml(threads: DocumentThreads, text: string): Promise<YamlAnswer> {
  const { answers, end } = await threads.run(text, TIME_LIMIT_MS)
  if (answers[0] !== undefined) return answers[0]
  if (end === 'busy') throw tooMany('Documents cannot be read at the moment', 5)
  throw invalid(
    end === 'late' ? 'The document takes too long to read' : 'The document is too large or too deeply nested to read',
  )
}
