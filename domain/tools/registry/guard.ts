import type { ToolDefinition } from '../../../contract/tools.ts'
import { guardAgents } from '../agents/guard.ts'
import { guardRenamed, unknownGuards } from '../capabilities/guard.ts'
import type { ResolvedCapability } from '../capabilities/resolve.ts'
import type { Deps } from '../deps.ts'
import { slugOfTool, toolNameOf } from '../mcp-servers/tool-names.ts'

/** Guards tools as `guardAgents` and `guardRenamed` do. Reads the record only for guards of tools that no given server has or had. */
export async function guardTools(
  { db }: Deps,
  organizationId: string,
  capabilities: ResolvedCapability[],
  definitions: ToolDefinition[],
): Promise<ResolvedCapability[]> {
  const isWithServer = capabilities.some(({ capability }) => capability.toolPrefix !== undefined)
  const slugs = isWithServer ? unknownGuards(capabilities, definitions).flatMap((name) => slugOfTool(name) ?? []) : []
  const guarded = guardAgents(capabilities, definitions)
  if (slugs.length === 0) return guardRenamed(guarded, definitions)
  const servers = await db.mcpServer.findMany({
    where: { organizationId, OR: [{ slug: { in: slugs } }, { formerSlugs: { hasSome: slugs } }] },
    select: { slug: true, formerSlugs: true },
  })
  const inactive = servers.flatMap(({ slug, formerSlugs }) => [slug, ...formerSlugs])
  return guardRenamed(
    guarded,
    definitions,
    inactive.map((slug) => toolNameOf(slug, '')),
  )
}
