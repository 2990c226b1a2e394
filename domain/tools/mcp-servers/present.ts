import type { McpServer } from '../../../contract/mcp-servers.ts'
import type { McpServer as ServerRow } from '../../../prisma/generated/client.ts'
import { toId } from '../../kit/ids.ts'
import { maskHeaders } from '../../kit/sent-headers.ts'
import { oauthOf } from './oauth.ts'
import { toolNameOf } from './tool-names.ts'

/** Shown columns of a server, without tools and credentials. `toolsCount` is null before the tools were read. */
export type ServerSummary = Omit<
  ServerRow,
  | 'organizationId'
  | 'credentials'
  | 'revision'
  | 'tools'
  | 'toolsBytes'
  | 'acceptedTools'
  | 'protocol'
  | 'toolsExpireAt'
> & { toolsCount: number | null; changedTools: string[]; isConnected: boolean }

export const presentServer = (row: ServerSummary): McpServer => ({
  id: toId('mcp', row.id),
  ref: `mcp:${row.id}`,
  name: row.name,
  description: row.description,
  url: row.url,
  transport_type: 'http',
  status: row.status,
  api_key_set: row.hasApiKey,
  headers: maskHeaders(row.headerNames),
  oauth: presentOauth(row),
  tools_policy: row.toolsPolicy,
  tools_count: row.toolsCount,
  tools_discovered_at: row.toolsDiscoveredAt?.toISOString() ?? null,
  tools_changed_at: row.toolsChangedAt?.toISOString() ?? null,
  changed_tools: row.changedTools.map((name) => toolNameOf(row.slug, name)),
  tools_error: row.toolsError,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})

function presentOauth(row: ServerSummary): McpServer['oauth'] {
  const oauth = oauthOf(row)
  if (oauth === undefined) return null
  const { has_client_secret: client_secret_set, ...shown } = oauth
  return { ...shown, client_secret_set, connected: row.isConnected }
}
