import type { z } from 'zod'

const MAX_ISSUES = 5
/** Characters of a key that a sentence repeats. */
const MAX_KEY = 100

/**
 * Parses a value with a schema. `problem` says which fields of an invalid value are wrong and how; `where` names the
 * value as a whole. `prefix` precedes the paths of the fields.
 */
export function check<S extends z.ZodType>(
  schema: S,
  value: unknown,
  where: string,
  prefix = '',
): { data: z.output<S>; problem?: never } | { problem: string } {
  const parsed = schema.safeParse(value, { error: inWords, reportInput: true })
  if (parsed.success) return { data: parsed.data }
  const sentences = parsed.error.issues.slice(0, MAX_ISSUES).map((issue) => {
    const [path, words] = describe(issue)
    return `${path === '' ? where : prefix + path}: ${words}`
  })
  return { problem: sentences.join('; ') }
}

function describe(issue: z.core.$ZodIssue): [path: string, words: string] {
  const nested = reasonOf(issue)
  const path = [...issue.path, ...(nested?.path ?? [])]
  // Keys of a record may be long.
  return [path.map((key) => `${String(key)}`.slice(0, MAX_KEY)).join('.'), wordsOf(nested ?? issue)]
}

/** Returns the more specific issue: of a record's key, or of the union's member whose type the value has. */
function reasonOf(issue: z.core.$ZodIssue): z.core.$ZodIssue | undefined {
  if (issue.code === 'invalid_key') return issue.issues.at(0)
  if (issue.code !== 'invalid_union') return undefined
  return issue.errors.map(([first]) => first).find((first) => first !== undefined && !isOtherType(first))
}

const isOtherType = ({ code, path }: z.core.$ZodIssue): boolean => code === 'invalid_type' && path.length === 0

/** Says that a field is missing, even if its schema has its own words. */
function wordsOf(issue: z.core.$ZodIssue): string {
  if (issue.input !== undefined || issue.code === 'custom') return lowerFirst(issue.message)
  return issue.message.startsWith('is required') ? issue.message : 'is required'
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

/** Returns the words for an issue whose schema has none of its own. */
function inWords(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${withArticle(`${issue.expected}`)}${isFraction(issue) ? '' : butNot(issue.input)}`
    case 'invalid_value':
      return `must be ${oneOf(issue.values)}`
    case 'invalid_union':
      return ofUnion(issue)
    case 'too_small':
      return `must ${isSized(issue) ? 'have' : 'be'} at least ${issue.minimum}${unitOf(issue, issue.minimum)}`
    case 'too_big':
      return `must ${isSized(issue) ? 'have' : 'be'} at most ${issue.maximum}${unitOf(issue, issue.maximum)}`
    case 'invalid_format':
      return `must be ${FORMATS[issue.format] ?? 'in another form'}`
    case 'unrecognized_keys':
      return `must not have the key ${shownKeys(issue.keys)}`
    default:
      return 'must be another value'
  }
}

const shownKeys = (keys: string[]): string =>
  keys
    .slice(0, MAX_ISSUES)
    .map((key) => JSON.stringify(key.slice(0, MAX_KEY)))
    .join(', ')

const FORMATS: Partial<Record<string, string>> = {
  datetime: 'a time such as 2030-01-31T09:00:00Z',
  email: 'an e-mail address',
  url: 'a URL',
  uuid: 'a UUID',
}

function ofUnion(issue: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidUnion>): string {
  const { discriminator, errors, input, options } = issue as typeof issue & { options?: unknown[] }
  if (options !== undefined) {
    const isMissing = (input as Record<string, unknown> | undefined)?.[`${discriminator}`] === undefined
    return `${isMissing ? 'is required:' : 'must be'} ${oneOf(options)}`
  }
  const types = errors.flatMap(([first]) => (first?.code === 'invalid_type' ? [withArticle(first.expected)] : []))
  return `must be ${listed([...new Set(types)])}${butNot(input)}`
}

const oneOf = (values: readonly unknown[]): string => {
  const shown = values.map((value) => (typeof value === 'bigint' ? `${value}` : JSON.stringify(value)))
  return shown.length > 3 ? `one of ${shown.join(', ')}` : listed(shown)
}

const listed = (words: string[]): string =>
  words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`

const ARTICLES: Partial<Record<string, string>> = {
  int: 'a whole number',
  null: 'null',
  record: 'an object',
  undefined: 'left out',
}

const withArticle = (type: string): string => ARTICLES[type] ?? (/^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`)

const butNot = (input: unknown): string => {
  const type = input === null ? 'null' : Array.isArray(input) ? 'array' : typeof input
  return `, not ${withArticle(type)}`
}

/** Whether a fraction is given for a whole number. */
const isFraction = ({ expected, input }: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidType>): boolean =>
  expected === 'int' && typeof input === 'number'

type Sized = { origin?: string }
const isSized = ({ origin }: Sized): boolean => origin === 'string' || origin === 'array'
const unitOf = ({ origin }: Sized, count: number | bigint): string => {
  const [one, several] = origin === 'string' ? [' character', ' characters'] : [' entry', ' entries']
  return origin !== 'string' && origin !== 'array' ? '' : count === 1 ? one : several
}
