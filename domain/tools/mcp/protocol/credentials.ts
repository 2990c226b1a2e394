import type { McpEndpoint } from './client.ts'

/** Hides an endpoint's credentials in a text, or in all texts of a value of parsed JSON. */
export type RedactCredentials = <T>(value: T) => T

/** Minimum length of a redacted value. A shorter one, such as the name of a region, is part of many words. */
const MIN_LENGTH = 8
/** Stands in place of a credential. */
export const HIDDEN = '[hidden]'

/**
 * Returns a function that hides an endpoint's key and header values, which a server may repeat. Numbers and values of
 * fewer than 8 characters stay. The depth of its input must be bounded.
 */
export function createRedaction({
  apiKey,
  headers,
  secrets: named = [],
}: Pick<McpEndpoint, 'apiKey' | 'headers' | 'secrets'>): RedactCredentials {
  const values = [apiKey ?? '', ...Object.values(headers), ...named].map((value) => value.trim())
  const parts = values.flatMap((value) => [value, withoutScheme(value), ...pairsIn(value), ...basicIn(value)])
  const secrets = new Set(parts.filter(({ length }) => length >= MIN_LENGTH))
  if (secrets.size === 0) return (value) => value
  // Longer ones first, because one may begin with another.
  const forms = [...new Set([...secrets].flatMap(formsOf))].sort((one, other) => other.length - one.length)
  const pattern = new RegExp(forms.map(escapePattern).join('|'), 'g')
  return <T>(value: T) => redactValue(value, pattern) as T
}

/** Returns what follows the scheme in a value such as `Bearer abc`. */
const withoutScheme = (value: string): string => /^[\w-]+ +(\S+)$/.exec(value)?.[1] ?? ''

/** Returns the values of a list of `name=value`, such as cookies. */
const pairsIn = (value: string): string[] =>
  value.split(/[;,] */).flatMap((pair) => /^[^=\s]+=(.+)$/.exec(pair)?.[1] ?? [])

/** Returns user and password of Basic authentication, and the password alone. */
function basicIn(value: string): string[] {
  const [, encoded] = /^basic +(\S+)$/i.exec(value) ?? []
  const pair = encoded === undefined ? '' : Buffer.from(encoded, 'base64').toString()
  return [pair, pair.slice(pair.indexOf(':') + 1)]
}

const escapePattern = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** Forms of a secret in an address or in JSON. */
const formsOf = (secret: string): string[] => [
  secret,
  encodeURIComponent(secret.toWellFormed()),
  JSON.stringify(secret).slice(1, -1),
  // As PHP writes it.
  JSON.stringify(secret).slice(1, -1).replaceAll('/', '\\/'),
]

function redactValue(value: unknown, pattern: RegExp): unknown {
  if (typeof value === 'string') return value.replace(pattern, HIDDEN)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((one) => redactValue(one, pattern))
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [key.replace(pattern, HIDDEN), redactValue(field, pattern)]),
  )
}
