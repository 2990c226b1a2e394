import { readdirSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import { describeError } from '../../../contract/errors.ts'
import { endpoints } from '../../../contract/index.ts'
import { check } from '../../../contract/kit/sentences.ts'
import { problemOf } from '../../support/sentences.ts'

type Field = { path: string; schema: z.ZodType }

/** Lists the fields of a body, nested ones too, with their paths. */
function fieldsOf(schema: z.ZodType, path = ''): Field[] {
  const { def } = schema as unknown as z.core.$ZodTypes['_zod']
  const add = (key: string, inner: unknown): Field[] => {
    const field = { path: path === '' ? key : `${path}.${key}`, schema: inner as z.ZodType }
    return [field, ...fieldsOf(field.schema, field.path)]
  }
  const into = (inner: unknown) => fieldsOf(inner as z.ZodType, path)
  switch (def.type) {
    case 'object':
      return Object.entries(def.shape).flatMap(([key, inner]) => add(key, inner))
    case 'array':
      return add('0', def.element)
    case 'record':
      return add('x', def.valueType)
    case 'union':
      return def.options.flatMap(into)
    case 'pipe':
      return into(def.in)
    default:
      return 'innerType' in def ? into(def.innerType) : []
  }
}

const LONG_TEXT = 'x'.repeat(2 * 1024 * 1024)
const LONG = [
  LONG_TEXT,
  `https://mcp.example/${LONG_TEXT}`,
  Array(10_001).fill('x'),
  Object.fromEntries(Array.from({ length: 10_001 }, (_, number) => [`key${number}`, 'x'])),
  { [LONG_TEXT]: 'x' },
]
const WRONG = [5, -1, 1.5, 1e300, '', 'x', 'a\nb', true, [], [5], ['x'], [null], {}, { x: 5 }, { type: 'x' }, null]

/** Returns the problem of one field of a body, in the words of an answer. */
function refusalOf({ path, schema }: Field, value: unknown) {
  const [, prefix = '', key = ''] = /^(.*\.)?(.*)$/.exec(path) ?? []
  const body = value === undefined ? {} : { [key]: value }
  const { problem } = check(z.object({ [key]: schema }), body, 'The request body', prefix)
  return problem === undefined ? undefined : describeError(400, problem)
}

const isElement = ({ path }: Field): boolean => /(^|\.)[0x]$/.test(path)

const bodies = endpoints.flatMap(({ operationId, body, multipart }) => {
  const schema = body ?? multipart?.fields
  return schema === undefined ? [] : [[operationId, fieldsOf(schema)] as const]
})

describe('what is refused in a body is named by its field', () => {
  it.each(bodies)('of %s', (_, fields) => {
    const seen = new Set<string>()
    for (const field of fields) {
      const values = isElement(field) ? [...WRONG, ...LONG] : [undefined, ...WRONG, ...LONG]
      for (const value of values) {
        const refusal = refusalOf(field, value)
        if (refusal === undefined) continue
        // Several elements of one list have a sentence each.
        for (const sentence of refusal.error.split(/; (?=[\w.-]+: )/)) {
          const problem = sentence.startsWith(field.path) ? problemOf(sentence) : 'does not begin with its field'
          if (problem !== undefined) seen.add(`${sentence.slice(0, 300)} <- ${problem}`)
        }
        const isOne = !/; [\w.-]+: /.test(refusal.error)
        if (isOne && !refusal.field?.startsWith(field.path)) seen.add(`${refusal.error.slice(0, 300)} <- has no field`)
        if (value === undefined && !/: is required/.test(refusal.error)) seen.add(`${refusal.error} <- is missing`)
      }
    }
    expect([...seen]).toEqual([])
  })

  it('walks every field', () => {
    expect(bodies.length).toBeGreaterThan(30)
    expect(bodies.flatMap(([, fields]) => fields).length).toBeGreaterThan(200)
  })
})

/** What makes an error of a sentence. */
const THROWN =
  /\b(?:invalid|conflict|forbidden|unauthenticated|badGateway|quotaExceeded|tooMany|bad|DomainError|RequestError)\(\s*(?:\d+,\s*|'[a-z_]+',\s*)?('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`)/g
const DECLARED = /\berror: ('(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`)/g

const sourcesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => `${folder}/${file}`)

/** Returns the sentences of a file, without codes. Each inserted value stands as `_`. */
function sentencesOf(file: string, pattern: RegExp): string[] {
  const texts = [...readFileSync(file, 'utf8').matchAll(pattern)].map(([, text = '']) => text.slice(1, -1))
  return texts.filter((text) => text.includes(' ')).map((text) => text.replace(/\$\{[^}]*\}/g, '_'))
}

describe('the sentences of errors in the sources', () => {
  const thrown = ['api', 'domain'].flatMap(sourcesOf).flatMap((file) => sentencesOf(file, THROWN))
  const declared = sourcesOf('contract').flatMap((file) => sentencesOf(file, DECLARED))

  it('have one form', () => {
    const sentences = [...thrown, ...declared.map((words) => `field: ${words}`)]
    expect(sentences.length).toBeGreaterThan(150)
    const problems = sentences.map((sentence) => [sentence, problemOf(sentence)])
    expect(problems.filter(([, problem]) => problem !== undefined)).toEqual([])
  })
})
