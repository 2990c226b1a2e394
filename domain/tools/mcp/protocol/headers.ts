import type { McpEndpoint } from './client.ts'

/** Headers that the transport and HTTP itself set. An endpoint cannot change them. */
const RESERVED = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'idempotency-key',
  'keep-alive',
  'last-event-id',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
const RESERVED_PREFIXES = ['mcp-', 'proxy-', 'sec-']

const isReserved = (name: string) => RESERVED.has(name) || RESERVED_PREFIXES.some((prefix) => name.startsWith(prefix))

/** Returns the headers of each request to a server: its own except the transport's, and its API key. */
export function headersOf({ apiKey, headers }: Pick<McpEndpoint, 'apiKey' | 'headers'>): Record<string, string> {
  const kept = Object.entries(headers).filter(([name]) => !isReserved(name.toLowerCase()))
  const hasOwn = kept.some(([name]) => name.toLowerCase() === 'authorization')
  if (apiKey !== undefined && apiKey !== '' && !hasOwn) kept.push(['authorization', `Bearer ${apiKey}`])
  return Object.fromEntries(kept)
}
