import { newUuid } from '../../domain/ids.ts'
import type { ListedTool } from '../../domain/mcp/client.ts'
import { fingerprintOf, fingerprintsOf } from '../../domain/mcp-servers/tools.ts'
import type { McpServer } from '../../prisma/generated/client.ts'

/** Returns a tool as a server lists it. */
export const listedTool = (name: string, more: Partial<ListedTool> = {}): ListedTool => ({
  name,
  title: undefined,
  description: `Does ${name}.`,
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
  isReadOnly: false,
  isIdempotent: false,
  ...more,
})

/** Returns the columns of a row for tools that were read and accepted just now. */
export function toolColumns(tools: ListedTool[]) {
  const stored = tools.map((tool) => ({ ...tool, fingerprint: fingerprintOf(tool) }))
  return { tools: { tools: stored, leftOut: [] }, acceptedTools: fingerprintsOf(stored) }
}

/** Returns the row of an active server, whose tools have just been read. */
export const serverRow = (tools: ListedTool[], more: Partial<McpServer> = {}): McpServer => ({
  id: newUuid(),
  organizationId: newUuid(),
  name: 'Files',
  slug: 'files',
  description: null,
  url: 'https://mcp.example/',
  status: 'active',
  toolsPolicy: 'accept',
  hasApiKey: false,
  headerNames: [],
  credentials: null,
  revision: 0,
  ...(toolColumns(tools) as unknown as Pick<McpServer, 'tools' | 'acceptedTools'>),
  protocol: null,
  toolsDiscoveredAt: new Date(),
  toolsExpireAt: new Date(Date.now() + 3_600_000),
  toolsChangedAt: null,
  toolsError: null,
  createdAt: new Date(),
  updatedAt: new Date(),
  ...more,
})
