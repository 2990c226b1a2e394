import { RequestError } from './errors.ts'

/** Maximum depth of JSON. Deeper values have no use here and would exhaust the stack of recursive code. */
export const MAX_DEPTH = 64

/** Object or array to check, with its path: `key` in its parent, and so on upwards. */
type Nested = { value: object; key: string; parent: Nested | undefined; depth: number }

/**
 * Throws RequestError 400 for NUL and lone surrogates, which JSON allows but Postgres cannot store, for numbers beyond
 * the largest, which would become null, for too deep nesting, and for `refusedKey`. The error names the place; `name`
 * names the whole value. Walks without recursion. A place is put into words only for the error: keys may be long, and
 * there may be many.
 */
export function checkText(value: unknown, name: string, refusedKey?: string): void {
  if (typeof value === 'string') checkString(value, () => name)
  if (typeof value === 'number') checkNumber(value, () => name)
  const left: Nested[] = isObject(value) ? [{ value, key: '', parent: undefined, depth: 1 }] : []
  for (let place = left.pop(); place !== undefined; place = left.pop()) {
    if (place.depth > MAX_DEPTH) throw tooDeep(name)
    checkItems(place, { name, refusedKey, left })
  }
}

export const tooDeep = (name: string) => new RequestError(400, `${name} is nested more than ${MAX_DEPTH} levels deep`)

type Walk = { name: string; refusedKey: string | undefined; left: Nested[] }

function checkItems(parent: Nested, { name, refusedKey, left }: Walk): void {
  const { value, depth } = parent
  const add = (key: string, inner: unknown) => {
    if (typeof inner === 'string') checkString(inner, () => describe(parent, name, key))
    else if (isObject(inner)) left.push({ value: inner, key, parent, depth: depth + 1 })
    else if (typeof inner === 'number') checkNumber(inner, () => describe(parent, name, key))
  }
  if (Array.isArray(value)) {
    value.forEach((inner, index) => void (Number.isFinite(inner) || add(`${index}`, inner)))
    return
  }
  for (const [key, inner] of Object.entries(value)) {
    checkString(key, () => describe(parent, name))
    if (key === refusedKey) throw new RequestError(400, `${describe(parent, name)}: must not have the key ${key}`)
    add(key, inner)
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** Describes a place, or `key` in it, as in `tags.1`. */
function describe(place: Nested, name: string, ...key: string[]): string {
  const keys = key.map(shorten)
  for (let at = place; at.parent !== undefined; at = at.parent) keys.unshift(shorten(at.key))
  return keys.length === 0 ? name : shorten(keys.join('.'))
}

const shorten = (text: string): string => text.slice(0, 200)

function checkString(text: string, describePlace: () => string): void {
  if (text.includes('\0')) throw new RequestError(400, `${describePlace()}: must not contain a NUL character`)
  if (!text.isWellFormed()) {
    throw new RequestError(400, `${describePlace()}: must be well-formed Unicode (it has a lone surrogate)`)
  }
}

function checkNumber(number: number, describePlace: () => string): void {
  if (!Number.isFinite(number)) throw new RequestError(400, `${describePlace()}: must be a number of at most 1.8e308`)
}
