/** Why a schema cannot be used, for whoever wrote it. */
export class SchemaProblem extends Error {
  override name = 'SchemaProblem'
}

type Schema = Record<string, unknown>
/** The checker's own keyword: what one evaluation of the schema beside it costs. */
export const WORK = 'x-work'
const REF_WORK = 50
const SCHEMA_WORK = 3

/**
 * Only these have an effect. Left out on purpose: `$id` and `$anchor` (names that could reach another schema), `$async`,
 * `format` (not validated), `uniqueItems` (quadratic), and whatever else Ajv might know.
 */
const PLAIN = [
  ...['type', 'enum', 'const', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['minLength', 'maxLength', 'pattern', 'minItems', 'maxItems', 'minContains', 'maxContains'],
  ...['required', 'minProperties', 'maxProperties', 'dependentRequired'],
]
const WITH_SCHEMA = [
  ...['not', 'if', 'then', 'else', 'items', 'contains', 'unevaluatedItems'],
  ...['additionalProperties', 'propertyNames', 'unevaluatedProperties'],
]
const WITH_SCHEMAS = ['allOf', 'anyOf', 'oneOf', 'prefixItems', 'properties', 'patternProperties', 'dependentSchemas']
const DYNAMIC_REFS = ['$dynamicRef', '$recursiveRef']

/**
 * The same schema with everything that a $ref names in one flat `$defs`, and only there, so that compiling takes time
 * in proportion to the schema's length whatever points where. Every schema carries its `WORK`. `patterns` are all that
 * it has. Throws SchemaProblem for a reference that leads nowhere or out of the schema.
 */
export function flattenSchema(root: Schema): { schema: Schema; patterns: string[] } {
  const names = nameTargets(root)
  const patterns: string[] = []
  const place = (node: unknown): unknown => {
    const name = isRecord(node) ? names.get(node) : undefined
    return name === undefined ? copy(node) : { [WORK]: REF_WORK, $ref: `#/$defs/${name}` }
  }
  const copy = (node: unknown): unknown => {
    if (!isRecord(node)) return node
    patterns.push(...patternsOf(node))
    const fields = fieldsOf(node, place)
    if (node.$ref !== undefined) fields.push(['$ref', `#/$defs/${names.get(resolve(root, node.$ref))}`])
    // A schema that allows everything stays empty: Ajv then does nothing at all.
    return fields.length === 0 ? {} : Object.fromEntries([[WORK, workOf(fields)], ...fields])
  }
  const top = place(root)
  const definitions = [...names].map(([target, name]) => [name, copy(target)])
  return { schema: { ...(isRecord(top) ? top : {}), $defs: Object.fromEntries(definitions) }, patterns }
}

function patternsOf({ pattern, patternProperties }: Schema): string[] {
  const names = isRecord(patternProperties) ? Object.keys(patternProperties) : []
  return typeof pattern === 'string' ? [pattern, ...names] : names
}

/** What $refs point at, wherever it is, by identity. */
function nameTargets(root: Schema): Map<unknown, string> {
  const names = new Map<unknown, string>()
  const seen = new Set<unknown>()
  const visit = (node: unknown): void => {
    if (!isRecord(node) || seen.has(node)) return
    seen.add(node)
    if (Array.isArray(node.enum) && node.enum.length === 0) throw new SchemaProblem('an enum must not be empty')
    for (const keyword of DYNAMIC_REFS) if (node[keyword] !== undefined) throw refProblem(node[keyword])
    if (node.$ref !== undefined) {
      const target = resolve(root, node.$ref)
      if (!names.has(target)) names.set(target, `${names.size}`)
      visit(target)
    }
    fieldsOf(node, visit)
  }
  visit(root)
  return names
}

/** A schema's effective keywords, those within it put through `map`. Own keys only: `constructor` is a name like any other. */
function fieldsOf(schema: Schema, map: (node: unknown) => unknown): [string, unknown][] {
  const fields: [string, unknown][] = []
  for (const keyword of PLAIN) if (Object.hasOwn(schema, keyword)) fields.push([keyword, schema[keyword]])
  for (const keyword of WITH_SCHEMA) if (Object.hasOwn(schema, keyword)) fields.push([keyword, map(schema[keyword])])
  for (const keyword of WITH_SCHEMAS) {
    const inner = Object.hasOwn(schema, keyword) ? schema[keyword] : undefined
    if (Array.isArray(inner)) fields.push([keyword, inner.map(map)])
    else if (isRecord(inner)) {
      fields.push([keyword, Object.fromEntries(Object.entries(inner).map(([key, node]) => [key, map(node)]))])
    }
  }
  return fields
}

const workOf = (fields: [string, unknown][]): number =>
  fields.reduce((sum, [keyword, value]) => sum + (keyword === '$ref' ? REF_WORK : 1 + entryCount(value)), SCHEMA_WORK)

const entryCount = (value: unknown): number =>
  typeof value === 'object' && value !== null ? Object.keys(value).length : 0

function resolve(root: Schema, ref: unknown): unknown {
  if (typeof ref !== 'string' || !/^#(\/|$)/.test(ref)) throw refProblem(ref)
  const node = decodeFragment(ref)
    .split('/')
    .slice(1)
    .reduce((parent: unknown, key) => ownField(parent, key.replaceAll('~1', '/').replaceAll('~0', '~')), root)
  if (isRecord(node) || typeof node === 'boolean') return node
  throw new SchemaProblem(`there is no schema at the $ref ${quote(ref)}`)
}

function ownField(parent: unknown, key: string): unknown {
  if (typeof parent !== 'object' || parent === null || !Object.hasOwn(parent, key)) return undefined
  return Reflect.get(parent, key)
}

function decodeFragment(ref: string): string {
  try {
    return decodeURIComponent(ref)
  } catch {
    throw refProblem(ref)
  }
}

const refProblem = (ref: unknown) =>
  new SchemaProblem(`the $ref ${quote(ref)} is not followed; only those of the form "#/…" into the schema itself are`)

const quote = (value: unknown): string => JSON.stringify(value).slice(0, 200)

const isRecord = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
