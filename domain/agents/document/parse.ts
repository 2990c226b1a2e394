import { type CreateAgentRequest, YAML_TYPES } from '../../../contract/agents.ts'
import type { AgentCapabilityConfig } from '../../../contract/tools.ts'
import { isRecord } from '../../../lib/is-record.ts'
import { invalid } from '../../kit/errors.ts'
import { splitFrontMatter } from '../../kit/yaml/front-matter.ts'
import type { YamlAnswer } from '../../kit/yaml/parse.ts'
import { readYaml, UNREADABLE } from '../../kit/yaml/read.ts'
import type { DocumentThreads } from '../../kit/yaml/threads.ts'
import { type Fields, readJson, readOwnJson } from './read-json.ts'

const FIELDS = [
  'id',
  'name',
  'description',
  'system_prompt',
  'default_model_id',
  'missing_model',
  'tags',
  'capabilities',
  'tools',
  'limits',
  'output_schema',
] as const

/** Fields that a document gives for an agent. The contract validates their values. */
export type AgentDocument = { [key in (typeof FIELDS)[number]]?: unknown } & { system_prompt: unknown }

/**
 * Patterns of a YAML map of an agent: its first line and its keys. Most prose does not match, and is not read as YAML.
 */
const FIRST_LINE = /(?:^|\n)(?![ \t\r]*(?:#|\n|$)|---|%)([^\n]+)/
const KEY_OR_BRACE = /^\s*[?{]|:(\s|$)/
const AGENT_KEY = /^(["']?)(name|system_prompt)\1[ \t]*:/m

/** Threads that parse documents, and the owner to whom the work is charged. */
type Reader = { threads: DocumentThreads; owner: string }

/**
 * Reads an agent from Markdown with YAML front matter, JSON, YAML, or a text that is its prompt. Throws `invalid` for a
 * malformed document, with the line, and for a document without a prompt; `too_many` when the service is busy with
 * other documents.
 */
export async function parseAgentDocument(
  reader: Reader,
  text: string,
  contentType: string | undefined,
): Promise<AgentDocument> {
  const type = contentType?.split(';')[0]?.trim().toLowerCase()
  const fields = await readFields(reader, text.replace(/^\ufeff/, ''), type)
  const known = FIELDS.filter((field) => Object.hasOwn(fields, field) && fields[field] !== undefined)
  const { system_prompt, ...rest }: Fields = Object.fromEntries(known.map((field) => [field, fields[field]]))
  if (system_prompt === undefined || system_prompt === null || system_prompt === '') {
    throw invalid('system_prompt: must not be empty')
  }
  if (Array.isArray(rest.capabilities)) rest.capabilities = rest.capabilities.map(withRef)
  return { ...rest, system_prompt }
}

/**
 * Returns the references that a document, such as an export, marks as missing. `input` is the contract's reading of it.
 */
export const markedAsMissing = (
  { capabilities, missing_model }: AgentDocument,
  input: CreateAgentRequest,
): { defaultModelId: string | null; capabilities: AgentCapabilityConfig[]; tools: [] } => ({
  defaultModelId: missing_model === true && typeof input.default_model_id === 'string' ? input.default_model_id : null,
  capabilities: (input.capabilities ?? []).filter((_, at) => {
    const given: unknown = Array.isArray(capabilities) ? capabilities[at] : undefined
    return isRecord(given) && given.missing === true
  }),
  tools: [],
})

const withRef = (capability: unknown): unknown => (typeof capability === 'string' ? { ref: capability } : capability)

async function readFields(reader: Reader, text: string, type: string | undefined): Promise<Fields> {
  if (type === 'application/json') return readJson(text)
  const isYaml = type !== undefined && YAML_TYPES.includes(type)
  const split = splitFrontMatter(text)
  if (split === 'unclosed') {
    // In plain YAML, `---` only starts the document.
    if (isYaml) return readYamlMap(reader, text, 0)
    throw invalid('line 1: the front matter is not closed; end it with a line ---')
  }
  if (split !== 'none') {
    const fields = await readYamlMap(reader, split.yaml, 1)
    const body = split.body.trim()
    return body === '' ? fields : { ...fields, system_prompt: body }
  }
  if (!/^\s*\{/.test(text)) return readYamlOrProse(reader, text, isYaml)
  return isYaml ? readYamlMap(reader, text, 0) : readJson(text)
}

async function readYamlMap(reader: Reader, text: string, linesBefore: number): Promise<Fields> {
  if (text.trim() === '') return {}
  const own = readOwnJson(text)
  if (own !== undefined) return own
  const answer = await readDocument(reader, text)
  if ('problem' in answer) throw invalid(`line ${linesBefore + answer.line}: ${answer.problem}`)
  const { value } = answer
  if (value === null) return {}
  if (!isRecord(value)) throw invalid(`line ${linesBefore + answer.line}: this is not a map of keys and values`)
  return value
}

async function readYamlOrProse(reader: Reader, text: string, isYaml: boolean): Promise<Fields> {
  const prose = { system_prompt: text.trim() === '' ? '' : text }
  if (!isYaml && !mayBeAgent(text)) return prose
  const answer = await readDocument(reader, text)
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

async function readDocument(reader: Reader, text: string): Promise<YamlAnswer> {
  const answer = await readYaml(reader.threads, text, reader)
  if (typeof answer === 'string') throw invalid(UNREADABLE[answer])
  return answer
}
