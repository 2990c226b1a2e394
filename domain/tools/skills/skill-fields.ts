import { isRecord } from '../../../lib/is-record.ts'

/** Fields of a skill, from the front matter of its SKILL.md. */
export type SkillFields = {
  name?: string
  description?: string
  license?: string | null
  compatibility?: string | null
  metadata?: Record<string, unknown>
  /** Separated by spaces. */
  allowedTools?: string | null
  version?: string
}

const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/
const MAX_NAME = 64
const MAX_DESCRIPTION = 1024
const MAX_OTHER = 500
const MAX_ALLOWED_TOOLS = 2000
const MAX_METADATA_BYTES = 16 * 1024
const MAX_VERSION = 100
const KNOWN = ['name', 'description', 'license', 'compatibility', 'metadata', 'allowed-tools']
/** Maximum number of unknown keys that are named. */
const MAX_NAMED = 20
const MAX_KEY_SHOWN = 100

/** Reads the fields of front matter, with all problems and warnings as "field: problem". */
export function checkFields(front: Record<string, unknown>): {
  fields: SkillFields
  errors: string[]
  warnings: string[]
} {
  const problems = createProblems()
  const name = textOf(front, 'name', problems)
  const description = textOf(front, 'description', problems)
  const license = textOf(front, 'license', problems)
  const compatibility = textOf(front, 'compatibility', problems)
  const metadata = metadataOf(front.metadata, problems)
  const allowedTools = allowedToolsOf(front['allowed-tools'], problems)
  checkName(name, front, problems)
  checkDescription(description, front, problems)
  checkLength('license', license, MAX_OTHER, problems)
  checkLength('compatibility', compatibility, MAX_OTHER, problems)
  checkLength('allowed-tools', allowedTools, MAX_ALLOWED_TOOLS, problems)
  const version = versionOf(metadata, problems)
  const given = { name, description, license, compatibility, metadata, allowedTools, version }
  return {
    // Absent fields are omitted, as in the type.
    fields: Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as SkillFields,
    errors: problems.all,
    warnings: [...unknownKeys(front), ...versionWarning(metadata)],
  }
}

type Problems = { all: string[]; add(field: string, problem: string): void }

function createProblems(): Problems {
  const all: string[] = []
  return { all, add: (field, problem) => all.push(`${field}: ${problem}`) }
}

/** Returns the text of a field. An empty value in YAML is null, and counts as absent. */
function textOf(front: Record<string, unknown>, field: string, problems: Problems): string | undefined {
  const value = front[field] ?? undefined
  if (value === undefined || typeof value === 'string') return value
  problems.add(field, typeof value === 'object' ? 'must be a text' : 'must be a text; put it in quotes')
  return undefined
}

const isMissing = (front: Record<string, unknown>, field: string): boolean => (front[field] ?? undefined) === undefined

function checkName(name: string | undefined, front: Record<string, unknown>, problems: Problems): void {
  if (isMissing(front, 'name')) problems.add('name', 'is required')
  if (name === undefined) return
  if (name === '') {
    problems.add('name', 'must not be empty')
    return
  }
  if (name.length > MAX_NAME) problems.add('name', `must be at most ${MAX_NAME} characters`)
  if (!NAME.test(name)) {
    problems.add('name', 'must be of a-z, 0-9 and single hyphens, which are not at its beginning or end')
  }
}

function checkDescription(description: string | undefined, front: Record<string, unknown>, problems: Problems): void {
  if (isMissing(front, 'description')) problems.add('description', 'is required')
  if (description?.trim() === '') problems.add('description', 'must not be empty')
  checkLength('description', description, MAX_DESCRIPTION, problems)
}

function checkLength(field: string, text: string | undefined, max: number, problems: Problems): void {
  if (text !== undefined && countCharacters(text) > max) problems.add(field, `must be at most ${max} characters`)
}

/** Counts characters, not UTF-16 code units. */
const countCharacters = (text: string): number => [...text].length

function metadataOf(value: unknown, problems: Problems): Record<string, unknown> | undefined {
  if (value === undefined || value === null) return undefined
  if (!isRecord(value)) {
    problems.add('metadata', 'must be a map of keys and values')
    return undefined
  }
  const json = JSON.stringify(value)
  if (Buffer.byteLength(json) > MAX_METADATA_BYTES) {
    problems.add('metadata', `must be at most ${MAX_METADATA_BYTES} bytes as JSON`)
  }
  if (/"__proto__":/.test(json)) problems.add('metadata', 'must not have the key __proto__')
  return value
}

/** Joins the tools, given as a text or a list of texts, into one text. */
function allowedToolsOf(value: unknown, problems: Problems): string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string') return value
  if (Array.isArray(value) && value.every((tool) => typeof tool === 'string')) return value.join(' ')
  problems.add('allowed-tools', 'must be a text, or a list of texts')
  return undefined
}

function versionOf(metadata: Record<string, unknown> | undefined, problems: Problems): string | undefined {
  if (metadata === undefined || !Object.hasOwn(metadata, 'version') || metadata.version === null) return undefined
  const { version } = metadata
  if (typeof version !== 'string' && typeof version !== 'number') {
    problems.add('metadata.version', 'must be a text')
    return undefined
  }
  const text = `${version}`
  if (text.trim() === '') problems.add('metadata.version', 'must not be empty')
  checkLength('metadata.version', text, MAX_VERSION, problems)
  return text
}

function unknownKeys(front: Record<string, unknown>): string[] {
  const unknown = Object.keys(front).filter((key) => !KNOWN.includes(key))
  const named = unknown.slice(0, MAX_NAMED).map((key) => `${shown(key)}: is not a field of a skill, and is ignored`)
  const left = unknown.length - named.length
  return left === 0 ? named : [...named, `front matter: has ${left} more keys that are ignored`]
}

/** YAML reads 1.0 as the number 1, and 1.10 as 1.1. */
const versionWarning = (metadata: Record<string, unknown> | undefined): string[] =>
  typeof metadata?.version === 'number'
    ? [`metadata.version: is the number ${metadata.version}; put a version in quotes`]
    : []

const shown = (key: string): string => key.slice(0, MAX_KEY_SHOWN).toWellFormed()
