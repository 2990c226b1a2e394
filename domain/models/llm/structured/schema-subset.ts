import { isRecord } from '../../../../lib/is-record.ts'

/** The part of JSON Schema that a provider takes for an answer. Objects must be closed, and schemas not recursive. */
export type Subset = {
  keywords: ReadonlySet<string>
  formats: ReadonlySet<unknown>
  /** Maximum number of properties that may be left out. */
  maxOptional: number
}

type Schema = Record<string, unknown>

/** Levels of nesting that every provider takes. */
const MAX_DEPTH = 10

/** Reports whether a provider takes a schema, which is the JSON Schema of an object. */
export function fitsSubset(root: Schema, subset: Subset): boolean {
  const definitions = isRecord(root.$defs) ? root.$defs : {}
  const open = new Set<string>()
  const known = new Set<string>()
  let optional = 0

  const fits = (node: unknown, depth: number): boolean => {
    if (!isRecord(node) || depth > MAX_DEPTH || !hasOnly(node, subset)) return false
    if (node.$ref !== undefined) return fitsReference(node.$ref, depth)
    if (isObject(node) && !fitsObject(node, depth)) return false
    if (isOf(node, 'array') && !fits(node.items, depth + 1)) return false
    if (node.anyOf !== undefined && !(Array.isArray(node.anyOf) && node.anyOf.every((one) => fits(one, depth + 1))))
      return false
    return node.type !== undefined || node.anyOf !== undefined || node.enum !== undefined || node.const !== undefined
  }

  const fitsObject = (node: Schema, depth: number): boolean => {
    if (node.additionalProperties !== false || !isRecord(node.properties)) return false
    const required = new Set(Array.isArray(node.required) ? node.required : [])
    optional += Object.keys(node.properties).filter((name) => !required.has(name)).length
    return optional <= subset.maxOptional && Object.values(node.properties).every((one) => fits(one, depth + 1))
  }

  const fitsReference = (ref: unknown, depth: number): boolean => {
    const [, name] = /^#\/\$defs\/([\w-]+)$/.exec(String(ref)) ?? []
    if (name === undefined || open.has(name) || !Object.hasOwn(definitions, name)) return false
    if (known.has(name)) return true
    open.add(name)
    const does = fits(definitions[name], depth)
    open.delete(name)
    known.add(name)
    return does
  }

  return isObject(root) && root.$ref === undefined && root.anyOf === undefined && fits(root, 0)
}

const hasOnly = (node: Schema, { keywords, formats }: Subset): boolean =>
  Object.keys(node).every((keyword) => keywords.has(keyword)) &&
  (node.format === undefined || formats.has(node.format)) &&
  [node.const, ...(Array.isArray(node.enum) ? node.enum : [])].every((one) => typeof one !== 'object' || one === null)

const isOf = ({ type }: Schema, name: string): boolean => type === name || (Array.isArray(type) && type.includes(name))

const isObject = (node: Schema): boolean => isOf(node, 'object') || node.properties !== undefined
