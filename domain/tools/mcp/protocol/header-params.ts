import { isRecord } from '../../../../lib/is-record.ts'

const KEY = 'x-mcp-header'
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean'])
/** Keywords whose schemas do not apply to a definite argument. */
const OTHERS = ['items', 'contains', 'propertyNames', 'not', 'if', 'then', 'else'].concat([
  'additionalProperties',
  'unevaluatedProperties',
  'unevaluatedItems',
])
const LISTS = ['prefixItems', 'oneOf', 'anyOf', 'allOf', 'items']
const MAPS = ['patternProperties', 'dependentSchemas', '$defs', 'definitions']

/**
 * Reads whether a tool's input schema wants arguments repeated in headers. A client must refuse tools with an invalid
 * wish (MCP 2026-07-28, Streamable HTTP, custom headers). The schema must be bounded in depth.
 */
export function readHeaderParams(schema: Record<string, unknown>): 'none' | 'some' | 'invalid' {
  const names = new Set<string>()
  if (!isValid(schema, 'root', names)) return 'invalid'
  return names.size === 0 ? 'none' : 'some'
}

type SchemaLevel = 'root' | 'property' | 'elsewhere'

function isValid(schema: unknown, place: SchemaLevel, names: Set<string>): boolean {
  if (!isRecord(schema)) return true
  if (KEY in schema && !isValidDeclaration(schema, place, names)) return false
  const { properties } = schema
  const below: SchemaLevel = place === 'elsewhere' ? 'elsewhere' : 'property'
  return (
    (!isRecord(properties) || Object.values(properties).every((one) => isValid(one, below, names))) &&
    otherSchemas(schema).every((one) => isValid(one, 'elsewhere', names))
  )
}

function isValidDeclaration(schema: Record<string, unknown>, place: SchemaLevel, names: Set<string>): boolean {
  const name = schema[KEY]
  if (place !== 'property' || typeof name !== 'string' || !TOKEN.test(name) || !TYPES.has(schema.type)) return false
  const isNew = !names.has(name.toLowerCase())
  names.add(name.toLowerCase())
  return isNew
}

const otherSchemas = (schema: Record<string, unknown>): unknown[] => [
  ...OTHERS.map((keyword) => schema[keyword]),
  ...LISTS.flatMap((keyword) => (Array.isArray(schema[keyword]) ? schema[keyword] : [])),
  ...MAPS.flatMap((keyword) => (isRecord(schema[keyword]) ? Object.values(schema[keyword]) : [])),
]
