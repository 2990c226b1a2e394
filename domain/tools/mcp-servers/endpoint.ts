import type { McpServer } from '../../../prisma/generated/client.ts'
import { resolveSecrets } from '../../kit/organization-secrets/resolve.ts'
import type { Deps } from '../deps.ts'
import type { McpEndpoint } from '../mcp/protocol/client.ts'
import { readCredentials } from './credentials.ts'

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
