import { z } from 'zod'
import { faceNames } from '../contract/faces.ts'
import { isLoopback } from '../lib/loopback.ts'
import { type AllowedHost, parseAllowedHost } from '../lib/outgoing/allowed-host.ts'
import { isKeyText } from './secrets/encryption-key.ts'

/** Command that makes a secret or an encryption key. */
export const MAKE_KEY = 'openssl rand -hex 32 makes one'

export const whole = (min: number, max?: number) => {
  const number = z.coerce.number().int().min(min)
  return max === undefined ? number : number.max(max)
}
/** Seconds of a timer, which Node.js limits to 2^31 ms. */
export const seconds = z.coerce.number().positive().max(2_000_000)
export const longSeconds = z.coerce.number().positive()
const TEN_YEARS_SECS = 10 * 365 * 24 * 60 * 60
export const wholeSeconds = whole(1, TEN_YEARS_SECS)

export const text = z.string().min(1)
export const flag = z
  .enum(['true', 'false'])
  .default('false')
  .transform((value) => value === 'true')
const split = (items: string): string[] =>
  items
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean)
export const commaSeparated = z.string().default('').transform(split)
export const faces = z
  .string()
  .default(faceNames.join(','))
  .transform(split)
  .pipe(z.array(z.enum([...faceNames, 'none'], { error: `must be of ${faceNames.join(', ')}, or none` })))
  .transform((names) => names.filter((name) => name !== 'none'))
/** List of domains that must not be empty if it is set: an empty list would let everybody in. */
export const domains = commaSeparated
  .transform((items) => items.map((item) => item.replace(/^@/, '').toLowerCase()))
  .pipe(z.array(z.string().regex(z.regexes.domain, { error: 'must be domains such as example.com' })).min(1))

export const privateHosts = commaSeparated.transform((items, issues): AllowedHost[] => {
  const hosts = items.map((item) => parseAllowedHost(item.toLowerCase()))
  const wrong = items[hosts.indexOf(undefined)]
  if (wrong !== undefined) {
    const message = `must be names, addresses or CIDR blocks, such as ollama:11434, 10.0.0.0/8 or [fd00::1]:8080, not ${wrong}`
    issues.addIssue({ code: 'custom', message })
  }
  return hosts.filter((host) => host !== undefined)
})

/** Pairs such as `name=value,other=value`, whose values are percent-encoded. */
export const headerPairs = text.transform((pairs, issues): Record<string, string> => {
  const headers = pairs.split(',').map((pair) => /^\s*([!#$%&'*+.^`|~\w-]+)\s*=(.*)$/.exec(pair))
  try {
    return Object.fromEntries(headers.map((found) => [found?.[1], decodeURIComponent(found?.[2]?.trim() ?? '%')]))
  } catch {
    issues.addIssue({ code: 'custom', message: 'must be pairs such as name=value,other=value, percent-encoded' })
    return z.NEVER
  }
})

export const encryptionKey = z
  .string()
  .refine(isKeyText, { error: `must be 32 bytes, as 64 hex digits or base64; ${MAKE_KEY}` })

export const httpUrl = z.url({ protocol: /^https?$/ })
/** Address that login secrets are sent to, so plain http is allowed only on this machine. */
export const safeUrl = httpUrl.refine(isSafe, { error: 'must begin with https://, but for localhost' })
export const plainUrl = httpUrl.refine((url) => /^https?:\/\/[^@?#]+$/.test(url), {
  error: 'must have no query, fragment or user',
})
export const withoutSlash = (url: string) => url.replace(/\/+$/, '')

function isSafe(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'https:' || isLoopback(hostname)
}
