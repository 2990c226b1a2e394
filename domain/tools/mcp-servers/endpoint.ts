import type { McpServer } from '../../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import type { McpEndpoint } from '../mcp/protocol/client.ts'
import { readCredentials } from './credentials.ts'

/** Returns the data for connecting to a server. Throws `UnreadableSecret`. */
export function endpointOf(deps: Deps, row: McpServer): McpEndpoint {
  const { organizationId, id, revision, name, url, protocol } = row
  const { apiKey, headers } = readCredentials(deps, row)
  return { organizationId, id, revision, name, url, apiKey: apiKey === '' ? undefined : apiKey, headers, protocol }
}
