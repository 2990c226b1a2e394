import { invalid } from './errors.ts'
import { MASK } from './secrets.ts'

const MAX_HEADERS_BYTES = 64 * 1024

/**
 * How headers are checked: the field that errors name, and the lower-case names that the service reserves for itself.
 */
type HeaderRules = { field: string; isReserved: (name: string) => boolean }

/**
 * Returns the headers to store. A value of `***` keeps the stored one. Throws `invalid` for invalid names, for a `***`
 * without a stored value, and for too many bytes.
 */
export function mergeHeaders(
  given: Record<string, string>,
  stored: Record<string, string>,
  { field, isReserved }: HeaderRules,
): Record<string, string> {
  const values = new Map(Object.entries(stored).map(([name, value]) => [name.toLowerCase(), value]))
  const seen = new Set<string>()
  const merged = Object.entries(given).map(([name, value]): [string, string] => {
    const key = name.toLowerCase()
    if (isReserved(key)) throw invalid(`${field}: must not have ${name}, which the service sets`)
    if (seen.has(key)) throw invalid(`${field}: must have ${name} once; upper and lower case make no difference`)
    seen.add(key)
    if (value !== MASK) return [name, value]
    const kept = values.get(key)
    if (kept === undefined)
      throw invalid(`${field}: must have a value for ${name}; ${MASK} keeps a stored one, and there is none`)
    return [name, kept]
  })
  const bytes = merged.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  if (bytes > MAX_HEADERS_BYTES) throw invalid(`${field}: must be at most ${MAX_HEADERS_BYTES} bytes together`)
  return Object.fromEntries(merged)
}

/** Headers that frame a message or belong to the connection, and the Idempotency-Key, which the service sets. */
const OF_SERVICE =
  /^(accept-encoding|connection|content-encoding|content-length|expect|host|idempotency-key|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/

/** Tells whether the service itself sets a header of its requests, by its lower-case name. */
export const isOfService = (name: string): boolean => OF_SERVICE.test(name)

/** Tells whether any stored value is kept. */
export const keepsValues = (given: Record<string, string>): boolean => Object.values(given).includes(MASK)

/** Masks the values of headers. */
export const maskHeaders = (names: string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, MASK]))
