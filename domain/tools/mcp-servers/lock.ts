import type { McpServer, Prisma } from '../../../prisma/generated/client.ts'
import { conflict } from '../../kit/errors.ts'

type ServerKey = Pick<McpServer, 'organizationId' | 'id'>

/** Locks and reads a server. Null if it is gone. */
export async function lockServer(
  tx: Prisma.TransactionClient,
  { organizationId, id }: ServerKey,
): Promise<McpServer | null> {
  await tx.$queryRaw`
    SELECT 1 FROM mcp_servers WHERE organization_id = ${organizationId}::uuid AND id = ${id}::uuid FOR NO KEY UPDATE`
  return tx.mcpServer.findUnique({ where: { organizationId_id: { organizationId, id } } })
}

/** Throws `conflict` if another server's tools would have the same names. */
export async function requireFreeSlug(
  tx: Prisma.TransactionClient,
  { organizationId, id, name, slug }: ServerKey & Pick<McpServer, 'name' | 'slug'>,
): Promise<void> {
  const other = await tx.mcpServer.findFirst({
    where: { organizationId, slug, id: { not: id } },
    select: { name: true },
  })
  if (other === null) return
  const shown = (text: string) => JSON.stringify(text)
  throw conflict(
    other.name === name
      ? `There is an MCP server named ${shown(name)} already; choose another name`
      : `The MCP server ${shown(other.name)} has the same tool names as ${shown(name)} would have; choose another name`,
  )
}
