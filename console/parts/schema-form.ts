import type { Field, Values } from './form.ts'

type Schema = {
  type?: string | string[]
  title?: string
  description?: string
  default?: unknown
  enum?: unknown[]
  enumNames?: string[]
  oneOf?: { const?: unknown; title?: string }[]
  anyOf?: { const?: unknown; title?: string }[]
  items?: Schema
  properties?: Record<string, Schema>
  format?: unknown
  minimum?: unknown
  maximum?: unknown
  required?: string[]
}

/**
 * Returns the fields of a form for the properties of a JSON schema. A property that fits no kind of field gets a field
 * for JSON. Null for a schema without properties.
 */
export function fieldsOf(schema: unknown): Field[] | null {
  const { properties, required = [] } = (typeof schema === 'object' && schema !== null ? schema : {}) as Schema
  if (typeof properties !== 'object' || properties === null || Object.keys(properties).length === 0) return null
  const names = Array.isArray(required) ? required : []
  return Object.entries(properties).map(([name, property]) => ({
    name,
    label: textOf(property?.title) ?? name,
    hint: textOf(property?.description) ?? '',
    isRequired: names.includes(name) && typesOf(property)[0] !== 'boolean',
    ...kindOf(property),
  }))
}

/** Returns the defaults of a JSON schema, by the names of its properties. */
export const defaultsOf = (schema: unknown): Values =>
  Object.fromEntries(
    Object.entries((schema as Schema | null)?.properties ?? {}).map(([name, property]) => [name, property?.default]),
  )

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

const typesOf = (schema: Schema | undefined): string[] =>
  [schema?.type ?? []].flat().filter((type) => typeof type === 'string' && type !== 'null')

/** Types of entries for the formats of texts. */
const ENTRIES = new Map<unknown, string>([
  ['email', 'email'],
  ['uri', 'url'],
  ['date', 'date'],
])

/**
 * Returns the limits that a browser can check. The service checks the rest: browsers count characters differently, and
 * some patterns take for ever.
 */
function limitsOf({ format, minimum, maximum }: Schema): Record<string, string | number> {
  const limits: Record<string, string | number> = {}
  const type = ENTRIES.get(format)
  if (type !== undefined) limits.type = type
  if (Number.isFinite(minimum)) limits.min = Number(minimum)
  if (Number.isFinite(maximum)) limits.max = Number(maximum)
  return limits
}

/** A browser counts steps from the lowest number. */
const wholeLimits = (limits: Record<string, string | number>) =>
  typeof limits.min === 'number' ? { ...limits, min: Math.ceil(limits.min) } : limits

function kindOf(schema: Schema | undefined): Pick<Field, 'kind' | 'options' | 'limits'> {
  const options = optionsOf(schema)
  if (options) return { kind: 'choice', options }
  const types = typesOf(schema)
  if (types.length !== 1) return { kind: 'json' }
  switch (types[0]) {
    case 'string':
      return { kind: 'text', limits: limitsOf(schema ?? {}) }
    case 'number':
      return { kind: 'number', limits: limitsOf(schema ?? {}) }
    case 'integer':
      return { kind: 'number', limits: { step: 1, ...wholeLimits(limitsOf(schema ?? {})) } }
    case 'boolean':
      return { kind: 'boolean' }
    case 'array': {
      const items = optionsOf(schema?.items)
      if (items) return { kind: 'choices', options: items }
      return { kind: typesOf(schema?.items).join() === 'string' ? 'lines' : 'json' }
    }
    default:
      return { kind: 'json' }
  }
}

/** Returns the enum of a schema, if all its values are texts. */
function optionsOf(schema: Schema | undefined): Field['options'] {
  const named = schema?.oneOf ?? schema?.anyOf ?? schema?.enum?.map((value) => ({ const: value, title: undefined }))
  if (!Array.isArray(named) || named.length === 0) return undefined
  if (!named.every((option) => typeof option?.const === 'string')) return undefined
  return named.map(({ const: value, title }, index) => ({
    value: String(value),
    label: title ?? schema?.enumNames?.[index] ?? String(value),
  }))
}
