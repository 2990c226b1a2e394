import type { McpServer } from '../../../prisma/generated/client.ts'
import { resolveSecrets } from '../../kit/organization-secrets/resolve.ts'
import type { Deps } from '../deps.ts'
import { type McpEndpoint, McpFailure } from '../mcp/protocol/client.ts'
import { readCredentials } from './credentials.ts'
import { latestHolder, readToken } from './grants/token.ts'
import { oauthOf } from './oauth.ts'

/** Returns the data for connecting to a server. Throws `UnreadableSecret` and `SecretRefused`. */
export async function endpointOf(deps: Deps, row: McpServer): Promise<McpEndpoint> {
  const { organizationId, id, revision, name, url, protocol } = row
  const { apiKey, headers } = readCredentials(deps, row)
  const { fill, values } = await resolveSecrets(deps, { organizationId, url }, [apiKey, ...Object.values(headers)])
  return {
    ...{ organizationId, id, revision, name, url, protocol },
    apiKey: apiKey === '' ? undefined : fill(apiKey),
    headers: Object.fromEntries(Object.entries(headers).map(([header, value]) => [header, fill(value)])),
    secrets: Object.values(values),
  }
}

/**
 * Returns the data for listing a server's tools, which all turns share: signed in as the latest user who has connected it. Throws as
 * `endpointOf` does, and `McpFailure` and `SignInFailure`.
 */
export async function endpointForListing(deps: Deps, row: McpServer, signal: AbortSignal): Promise<McpEndpoint> {
  const endpoint = await endpointOf(deps, row)
  if (oauthOf(row) === undefined) return endpoint
  const holder = await latestHolder(deps, row)
  const token = holder === undefined ? undefined : await readToken(deps, row, holder, signal)
  if (token === undefined) throw new McpFailure('Nobody has signed in at the server; connect it first.')
  const { accessToken } = token
  return { ...endpoint, apiKey: accessToken, secrets: [...(endpoint.secrets ?? []), accessToken] }
}
