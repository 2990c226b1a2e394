import type { McpServer } from '../../prisma/generated/client.ts'
import type { Capability } from '../capabilities/capability.ts'

/** Returns the capability of an MCP server: its tools, as they were last read. */
export const serverCapability = (row: McpServer): Capability => ({
  id: `mcp:${row.id}`,
  name: row.name,
  description: row.description ?? '',
  status: row.status === 'active' ? 'available' : 'disabled',
  category: 'mcp',
  icon: 'plug',
  dependencies: [],
  features: [],
  tools: [],
})
