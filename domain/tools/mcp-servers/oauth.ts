import type { McpOauthRequest } from '../../../contract/mcp-servers.ts'
import type { McpServer as ServerRow } from '../../../prisma/generated/client.ts'
import { invalid } from '../../kit/errors.ts'
import { MASK } from '../../kit/secrets.ts'
import type { Credentials } from './credentials.ts'

/** Content of the column `oauth`. The secret of the client is among the credentials. */
export type Oauth = {
  as: 'organization' | 'user'
  scopes: string[]
  client_id: string | null
  has_client_secret: boolean
}

/** Returns how the service signs in at a server. Undefined if it does not. */
export const oauthOf = ({ oauth }: Pick<ServerRow, 'oauth'>): Oauth | undefined =>
  // Only `oauthColumn` writes the column.
  oauth === null ? undefined : (oauth as Oauth)

export const oauthColumn = ({ as, scopes, client_id, client_secret }: McpOauthRequest): Oauth | null =>
  as === 'none'
    ? null
    : {
        as,
        scopes: [...new Set(scopes ?? [])],
        client_id: client_id || null,
        has_client_secret: Boolean(client_secret),
      }

/** Returns the client's secret after a change. Throws `invalid` for a secret without its client. */
export function clientSecretOf({ as, client_id, client_secret }: McpOauthRequest, stored: string): string {
  if (as === 'none' || !client_secret) return ''
  if (!client_id) throw invalid('oauth.client_secret: needs a client_id')
  if (client_secret !== MASK) return client_secret
  if (stored !== '') return stored
  throw invalid(`oauth.client_secret: must be a secret; ${MASK} keeps a stored one, and there is none`)
}

/** Throws `invalid` for a key that would be sent in place of the tokens. */
export function checkOauth(oauth: Oauth | undefined | null, { apiKey, headers }: Credentials): void {
  if (oauth == null) return
  if (apiKey !== '') throw invalid('api_key: must be empty with oauth, whose tokens are sent instead')
  if (Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')) {
    throw invalid('headers: must not have Authorization with oauth, whose tokens are sent in it')
  }
}
