import { Prisma, type McpServer as ServerRow } from '../../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { slugOfTool } from './tool-names.ts'

/** Maximum JSON size of the lists of tools that are read at once. A single list is always smaller. */
export const MAX_LISTS_BYTES = 2 * 1024 * 1024

/** Server as prompts and calls use it. `isTooMuch`: its tools were omitted for lack of room. */
export type UsedServer = ServerRow & { isTooMuch?: boolean }

/**
 * Reads the servers with these ids, including disabled ones, with the tools of active ones while there is room, in the
 * order of the ids. To run one tool, only its server is read. Accepted tools are read only where they matter.
 */
export async function readServersForUse(
  deps: Deps,
  organizationId: string,
  ids: string[],
  { toolName }: { toolName?: string } = {},
): Promise<UsedServer[]> {
  const slug = toolName === undefined ? undefined : slugOfTool(toolName)
  if (ids.length === 0 || (toolName !== undefined && slug === undefined)) return []
  const named = slug === undefined ? Prisma.empty : Prisma.sql`AND slug = ${slug}`
  // Unselected values are not read: neither the sum nor the order reads a list.
  return deps.db.$queryRaw<UsedServer[]>`
    SELECT id, organization_id AS "organizationId", name, slug, former_slugs AS "formerSlugs", description, url,
      status::text,
      tools_policy::text AS "toolsPolicy", has_api_key AS "hasApiKey", header_names AS "headerNames", credentials,
      oauth, revision,
      CASE WHEN bytes_until <= ${MAX_LISTS_BYTES} AND status = 'active' THEN tools END AS tools,
      tools_bytes AS "toolsBytes",
      CASE WHEN bytes_until <= ${MAX_LISTS_BYTES} AND tools_policy = 'ask' THEN accepted_tools END AS "acceptedTools",
      protocol, tools_discovered_at AS "toolsDiscoveredAt", tools_expire_at AS "toolsExpireAt",
      tools_changed_at AS "toolsChangedAt", tools_error AS "toolsError", created_at AS "createdAt",
      updated_at AS "updatedAt", bytes_until > ${MAX_LISTS_BYTES} AND tools IS NOT NULL AS "isTooMuch"
    FROM (
      SELECT *, array_position(${ids}::uuid[], id) AS position,
        sum(CASE WHEN status = 'active' THEN tools_bytes ELSE 0 END)
          OVER (ORDER BY array_position(${ids}::uuid[], id)) AS bytes_until
      FROM mcp_servers WHERE organization_id = ${organizationId}::uuid AND id = ANY (${ids}::uuid[]) ${named}
    ) AS used ORDER BY position`
}
