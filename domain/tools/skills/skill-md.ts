import { isRecord } from '../../../lib/is-record.ts'
import { storableJson } from '../../../lib/postgres-text.ts'
import { DomainError } from '../../kit/errors.ts'
import { splitFrontMatter } from '../../kit/yaml/front-matter.ts'
import { readYaml, UNREADABLE } from '../../kit/yaml/read.ts'
import type { DocumentThreads } from '../../kit/yaml/threads.ts'
import { checkFields, type SkillFields } from './skill-fields.ts'

/** Contents of a SKILL.md, and its problems. `fields` has all readable fields, valid or not. */
export type SkillMd = {
  fields: SkillFields
  /** Each as "field: problem". A skill with errors is refused. */
  errors: string[]
  warnings: string[]
}

const KIB = 1024
const MAX_FRONT_MATTER_BYTES = 64 * KIB
const MAX_BODY_BYTES = 100 * KIB
/** Number of lines above which a skill uses too much of a model's context. */
const MANY_LINES = 500

/**
 * Reads the text of a SKILL.md and reports all of its problems at once. `owner` is the organization's, for fairness.
 * Throws `too_many` when the service is busy with other documents.
 */
export async function readSkillMd(threads: DocumentThreads, text: string, owner: string): Promise<SkillMd> {
  const warnings = countLines(text) > MANY_LINES ? [`body: SKILL.md has more than ${MANY_LINES} lines`] : []
  const split = splitFrontMatter(text.replace(/^\ufeff/, ''))
  if (typeof split === 'string') return { fields: {}, errors: [`front matter: ${WITHOUT[split]}`], warnings }
  const front = await readFrontMatter(threads, split.yaml, owner)
  const ofBody = bodyProblems(split.body)
  if (typeof front === 'string') return { fields: {}, errors: [`front matter: ${front}`, ...ofBody], warnings }
  const { fields, errors, warnings: more } = checkFields(front)
  if (split.body.trim() === '') more.push('body: is empty')
  return { fields, errors: [...errors, ...ofBody], warnings: [...more, ...warnings] }
}

/** Returns the fields of a valid skill. Throws `unprocessable` with all problems of an invalid one. */
export function requireValid({ fields, errors }: SkillMd): Required<SkillFields> {
  const { name, description } = fields
  if (errors.length > 0 || name === undefined || description === undefined) {
    throw new DomainError('unprocessable', errors.join('; '))
  }
  return {
    name,
    description,
    license: fields.license ?? null,
    compatibility: fields.compatibility ?? null,
    metadata: fields.metadata ?? {},
    allowedTools: fields.allowedTools ?? null,
    version: fields.version ?? DEFAULT_VERSION,
  }
}

const DEFAULT_VERSION = '1.0'

const WITHOUT = {
  none: 'is missing; start with a line "---", then "name: …" and "description: …" on lines of their own, then another "---"',
  unclosed: 'is not closed; end it with a line "---"',
}

/** Returns the front matter's map, or its problem. */
async function readFrontMatter(
  threads: DocumentThreads,
  yaml: string,
  owner: string,
): Promise<Record<string, unknown> | string> {
  if (Buffer.byteLength(yaml) > MAX_FRONT_MATTER_BYTES) return `must be at most ${MAX_FRONT_MATTER_BYTES} bytes`
  const answer = await readYaml(threads, yaml, { owner })
  if (typeof answer === 'string') return UNREADABLE[answer]
  // The YAML begins on the second line.
  if ('problem' in answer) return `line ${answer.line + 1}: ${answer.problem}`
  const { value, line } = answer
  if (value === null) return {}
  if (!isRecord(value)) return `line ${line + 1}: this is not a map of keys and values`
  // Escapes in quotes can produce text that Postgres cannot store.
  return isStorable(value) ? value : 'must not contain NUL or halves of characters'
}

const isStorable = (value: unknown): boolean => JSON.stringify(storableJson(value)) === JSON.stringify(value)

function bodyProblems(body: string): string[] {
  const problems: string[] = []
  if (Buffer.byteLength(body) > MAX_BODY_BYTES) problems.push(`body: must be at most ${MAX_BODY_BYTES} bytes of UTF-8`)
  if (body.includes('\0')) problems.push('body: must not contain NUL')
  return problems
}

function countLines(text: string): number {
  let lines = 0
  for (let start = 0; start < text.length; lines++) {
    const end = text.indexOf('\n', start)
    start = end === -1 ? text.length : end + 1
  }
  return lines
}
