import { checkUrl } from '../../lib/outgoing/check-url.ts'
import { OutgoingError } from '../../lib/outgoing/outgoing-error.ts'
import type { Deps } from '../deps.ts'
import { invalid } from '../errors.ts'
import { MASK } from '../secrets.ts'
import type { Credentials } from './credentials.ts'

const MAX_HEADERS_BYTES = 64 * 1024

/** Headers that the transport sets, or that end or frame a message. */
const OF_TRANSPORT =
  /^(accept|accept-encoding|connection|content-.*|expect|host|keep-alive|last-event-id|mcp-.*|proxy-.*|te|trailer|transfer-encoding|upgrade)$/

/** Checks an address and returns it as it is stored. Throws `invalid` for one that may not be called. */
export async function checkServerUrl(deps: Deps, text: string): Promise<string> {
  const trimmed = text.trim()
  if (trimmed.includes('#')) throw invalid('url: must have no fragment')
  await checkUrl(deps.outgoing, trimmed).catch((error: unknown) => {
    throw error instanceof OutgoingError ? invalid(`url: ${error.message}`) : error
  })
  return new URL(trimmed).href
}

/**
 * Returns the headers as they are to be stored, where a value of `***` is the one that is stored. Throws `invalid` for
 * names that cannot be sent, and for a value that is not there.
 */
export function mergeHeaders(given: Record<string, string>, stored: Record<string, string>): Record<string, string> {
  const values = new Map(Object.entries(stored).map(([name, value]) => [name.toLowerCase(), value]))
  const seen = new Set<string>()
  const merged = Object.entries(given).map(([name, value]): [string, string] => {
    const key = name.toLowerCase()
    if (OF_TRANSPORT.test(key)) throw invalid(`headers: ${name} is set by the service and cannot be given`)
    if (seen.has(key)) throw invalid(`headers: ${name} is given twice; upper and lower case make no difference`)
    seen.add(key)
    if (value !== MASK) return [name, value]
    const kept = values.get(key)
    if (kept === undefined) throw invalid(`headers: ${MASK} stands for a value that is kept, and ${name} has none yet`)
    return [name, kept]
  })
  return Object.fromEntries(merged)
}

/** Throws `invalid` for credentials that cannot be sent together. */
export function checkCredentials({ apiKey, headers }: Credentials): void {
  const entries = Object.entries(headers)
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  if (bytes > MAX_HEADERS_BYTES) throw invalid(`headers: must be at most ${MAX_HEADERS_BYTES} bytes together`)
  if (apiKey !== '' && entries.some(([name]) => name.toLowerCase() === 'authorization')) {
    throw invalid('headers: Authorization is how the api_key is sent; give one of them')
  }
}
