import type { McpServer } from '../../../prisma/generated/client.ts'
import { type EncryptedColumn, placeOf, UnreadableSecret } from '../../kit/secrets.ts'
import type { Deps } from '../deps.ts'

/** Column of the keys and headers of MCP servers. */
export const MCP_CREDENTIALS: EncryptedColumn = {
  table: 'mcp_servers',
  keys: ['organization_id', 'id'],
  column: 'credentials',
}

/** Credentials that each request to a server carries, and the secret of a sign-in's client. Empty texts mean none. */
export type Credentials = { apiKey: string; headers: Record<string, string>; clientSecret: string }

type ServerKey = Pick<McpServer, 'organizationId' | 'id'>

/** Returns the columns of a server's credentials: encrypted, and their visible part in plain. */
export function credentialColumns(
  { secrets }: Deps,
  { organizationId, id }: ServerKey,
  { apiKey, headers, clientSecret }: Credentials,
): Pick<McpServer, 'credentials' | 'hasApiKey' | 'headerNames'> {
  const headerNames = Object.keys(headers)
  const isEmpty = apiKey === '' && headerNames.length === 0 && clientSecret === ''
  const text = JSON.stringify({ api_key: apiKey, headers, client_secret: clientSecret || undefined })
  return {
    credentials: isEmpty ? null : secrets.encrypt(text, placeOf(MCP_CREDENTIALS, [organizationId, id])),
    hasApiKey: apiKey !== '',
    headerNames,
  }
}

/** Decrypts a server's credentials. Throws `UnreadableSecret`. */
export function readCredentials(
  { secrets }: Deps,
  { organizationId, id, credentials }: ServerKey & Pick<McpServer, 'credentials'>,
): Credentials {
  if (credentials === null) return { apiKey: '', headers: {}, clientSecret: '' }
  const { api_key, headers, client_secret } = JSON.parse(
    secrets.decrypt(credentials, placeOf(MCP_CREDENTIALS, [organizationId, id])),
  )
  return { apiKey: api_key, headers, clientSecret: client_secret ?? '' }
}

/** Describes stored credentials that no process can read. */
export const damagedCredentials = (name: string): string =>
  `The stored credentials of ${name} are damaged and cannot be read; set them again`

export const isDamaged = (error: unknown): boolean => error instanceof UnreadableSecret && error.isDamaged
