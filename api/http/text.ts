import { RequestError } from './errors.ts'

/** Maximum depth of JSON. Deeper values have no use here and would exhaust the stack of recursive code. */
const MAX_DEPTH = 64

type Item = { value: object; path: string; depth: number }

/**
 * Throws RequestError 400 for NUL and lone surrogates, which JSON allows but Postgres cannot store, and for too deep
 * nesting. The error names the place; `name` is that of the whole. Walks without recursion.
 */
export function checkText(value: unknown, name: string): void {
  if (typeof value === 'string') checkString(value, name)
  const left: Item[] = isObject(value) ? [{ value, path: '', depth: 1 }] : []
  for (let item = left.pop(); item !== undefined; item = left.pop()) {
    if (item.depth > MAX_DEPTH) throw new RequestError(400, `${name} is nested more than ${MAX_DEPTH} levels deep`)
    for (const [key, inner] of Object.entries(item.value)) {
      const path = item.path === '' ? key : `${item.path}.${key}`
      checkString(key, item.path || name)
      if (typeof inner === 'string') checkString(inner, path)
      if (isObject(inner)) left.push({ value: inner, path, depth: item.depth + 1 })
    }
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

function checkString(text: string, place: string): void {
  const where = place.slice(0, 200)
  if (text.includes('\0')) throw new RequestError(400, `${where}: must not contain a NUL character`)
  if (!text.isWellFormed())
    throw new RequestError(400, `${where}: must be well-formed Unicode (it has a lone surrogate)`)
}
