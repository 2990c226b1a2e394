import type { LlmProviderType } from '../../../contract/llm-providers.ts'
import { findProfile } from '../../../domain/models/llm/profiles/find.ts'
import { withoutCall } from '../../../domain/models/llm/providers/provider-data.ts'
import { isEnforced } from '../../../domain/models/llm/structured/enforced.ts'

const object = (properties: object, more: object = {}) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
})
const TEXT = { type: 'string' }
const FIT = object({ a: TEXT, b: { anyOf: [{ type: 'integer' }, { type: 'null' }] }, c: { enum: ['x', 1, null] } })
const nested = (levels: number): object => (levels === 0 ? TEXT : object({ a: nested(levels - 1) }))

const MODELS: Record<Exclude<LlmProviderType, 'llmsim'>, string> = {
  openai: 'gpt-5-mini',
  openai_completions: 'gpt-5-mini',
  anthropic: 'claude-sonnet-4-5',
  gemini: 'gemini-2.5-flash',
}
const isEnforcedBy = (type: LlmProviderType, schema: object, { name = '', hasTools = false } = {}): boolean => {
  const model = name === '' && type !== 'llmsim' ? MODELS[type] : name
  return isEnforced({ type, name: model, profile: findProfile(type, model) }, { ...schema }, hasTools)
}
const enforcers = (schema: object) =>
  (Object.keys(MODELS) as LlmProviderType[]).filter((type) => isEnforcedBy(type, schema))

const ALL = ['openai', 'openai_completions', 'anthropic', 'gemini']
const OPENAI = ['openai', 'openai_completions']

describe('a schema that a provider enforces', () => {
  it.each<[string, object, string[]]>([
    ['closed, with all properties required', FIT, ALL],
    ['with a list of objects', object({ a: { type: 'array', items: FIT } }), ALL],
    ['with definitions', object({ a: { $ref: '#/$defs/x' }, b: { $ref: '#/$defs/x' } }, { $defs: { x: FIT } }), ALL],
    ['of ten levels', nested(10), ALL],
    ['with bounds of numbers', object({ a: { type: 'integer', minimum: 1 } }), ALL],
    ['with a bound of a text', object({ a: { ...TEXT, maxLength: 3 } }), ['anthropic']],
    ['with the format of a day', object({ a: { ...TEXT, format: 'date' } }), ALL],
    ['with the format of an address', object({ a: { ...TEXT, format: 'email' } }), [...OPENAI, 'anthropic']],
    ['with a format of its own', object({ a: { ...TEXT, format: 'iban' } }), []],
    ['with a property to leave out', object({ a: TEXT }, { required: [] }), ['anthropic', 'gemini']],
    ['that is open', { type: 'object', properties: { a: TEXT } }, []],
    ['that is a map', object({ a: { type: 'object', additionalProperties: TEXT } }), []],
    [
      'with a recursion',
      object({ a: { $ref: '#/$defs/x' } }, { $defs: { x: object({ x: { $ref: '#/$defs/x' } }) } }),
      [],
    ],
    ['with a reference to the whole', object({ a: { $ref: '#' } }), []],
    ['with a reference to nothing', object({ a: { $ref: '#/$defs/x' } }), []],
    ['of eleven levels', nested(11), []],
    ['with a keyword that few know', object({ a: { not: TEXT } }), []],
    ['with an object as a value', object({ a: { enum: [{}] } }), []],
    ['with a value of any type', object({ a: {} }), []],
    ['without properties', { type: 'object', additionalProperties: false }, []],
  ])('is one %s', (_, schema, expected) => {
    expect(enforcers(schema)).toEqual(expected)
  })

  it.each<[LlmProviderType, string, boolean, boolean]>([
    ['openai', 'gpt-4', false, false],
    ['openai', 'a-new-model', false, false],
    ['openai_completions', 'gpt-oss-120b', false, false],
    ['gemini', 'gemini-2.5-flash', true, false],
    ['gemini', 'gemini-3.5-flash', true, true],
    ['gemini', 'gemma-4-31b-it', false, false],
    ['anthropic', 'claude-sonnet-4-5', true, true],
    ['llmsim', 'llmsim-script', false, false],
  ])('is enforced for %s, %s, with tools %s: %s', (type, name, hasTools, expected) => {
    expect(isEnforcedBy(type, FIT, { name, hasTools })).toBe(expected)
  })
})

it("takes a call out of a provider's data, and leaves the others their places", () => {
  const call = (index: number, mark: string) => ({ type: 'tool_call', index, options: { p: { mark } } })
  const text = { type: 'text', length: 3 }
  const data = { source: 's', blocks: [text, call(0, 'a'), call(1, 'b'), call(2, 'c')] }
  expect(withoutCall(data, 1)).toEqual({ source: 's', blocks: [text, call(0, 'a'), call(1, 'c')] })
  expect(withoutCall(undefined, 1)).toBeUndefined()
})
