import type { McpServerId } from '../../../contract/kit/ids.ts'
import type { McpServer } from '../../../contract/mcp-servers.ts'
import { Prisma } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { audited } from '../../kit/audit/entry.ts'
import { notFound } from '../../kit/errors.ts'
import type { All } from '../../kit/lists.ts'
import type { Deps } from '../deps.ts'
import { presentServer, type ServerSummary } from './present.ts'

/** Lists the organization's servers, newest first. */
export async function listServers(deps: Deps, actor: Actor): Promise<All<McpServer>> {
  return (await readSummaries(deps, actor, Prisma.empty)).map(presentServer)
}

/** Returns a server. Throws `not_found`. */
export async function getServer(deps: Deps, actor: Actor, id: McpServerId): Promise<McpServer> {
  const [row] = await readSummaries(deps, actor, Prisma.sql`AND id = ${id}::uuid`)
  if (row === undefined) throw notFound('MCP server')
  return presentServer(row)
}

/** Deletes a server. Throws `not_found`. */
export async function deleteServer(deps: Deps, actor: Actor, id: McpServerId): Promise<void> {
  await audited(deps, actor, { action: 'mcp_server.delete', target: id }, async (tx) => {
    const { count } = await tx.mcpServer.deleteMany({ where: { organizationId: actor.organizationId, id } })
    if (count === 0) throw notFound('MCP server')
  })
}

/** Reads servers without their tools, which may have half a megabyte each. */
const readSummaries = (deps: Deps, { organizationId, userId }: Actor, which: Prisma.Sql) => deps.db.$queryRaw<
  ServerSummary[]
>`
  SELECT id, name, slug, description, url, status::text, tools_policy::text AS "toolsPolicy",
    has_api_key AS "hasApiKey", header_names AS "headerNames", oauth, oauth IS NOT NULL AND EXISTS (
      SELECT 1 FROM mcp_grants g WHERE g.organization_id = mcp_servers.organization_id AND g.server_id = mcp_servers.id
        AND g.holder_id IN (${organizationId}::uuid, ${userId}::uuid) AND g.tokens IS NOT NULL
    ) AS "isConnected",
    jsonb_array_length(tools -> 'tools') AS "toolsCount", tools_discovered_at AS "toolsDiscoveredAt",
    tools_changed_at AS "toolsChangedAt", tools_error AS "toolsError",
    CASE WHEN tools_changed_at IS NULL THEN '{}' ELSE ARRAY(
      SELECT COALESCE(found.name, accepted.name)
      FROM (
        SELECT tool ->> 'name' AS name, tool ->> 'fingerprint' AS fingerprint
        FROM jsonb_array_elements(tools -> 'tools') AS tool
      ) AS found
      FULL JOIN (
        SELECT pair ->> 0 AS name, pair ->> 1 AS fingerprint FROM jsonb_array_elements(accepted_tools) AS pair
      ) AS accepted ON accepted.name = found.name
      WHERE found.fingerprint IS DISTINCT FROM accepted.fingerprint
      ORDER BY 1
    ) END AS "changedTools",
    created_at AS "createdAt", updated_at AS "updatedAt"
  FROM mcp_servers WHERE organization_id = ${organizationId}::uuid ${which} ORDER BY id DESC`
