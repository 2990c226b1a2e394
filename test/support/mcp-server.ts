import { newUuid } from '../../domain/kit/ids.ts'
import type { Discovered, ListedTool, McpCall, McpClient, McpEndpoint } from '../../domain/tools/mcp/protocol/client.ts'
import { fingerprintOf, fingerprintsOf } from '../../domain/tools/mcp-servers/tools.ts'
import type { McpServer, Prisma } from '../../prisma/generated/client.ts'

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
  // Prisma's type of JSON lacks `undefined`, which is left out.
  const column = { tools: stored, leftOut: [] } as unknown as Prisma.InputJsonObject
  const toolsBytes = Buffer.byteLength(JSON.stringify(column))
  return { tools: column, toolsBytes, acceptedTools: [...fingerprintsOf(stored)] }
}

/** Returns the row of an active server, whose tools have just been read. */
export const serverRow = (tools: ListedTool[], more: Partial<McpServer> = {}): McpServer => ({
  id: newUuid(),
  organizationId: newUuid(),
  name: 'Files',
  slug: 'files',
  formerSlugs: [],
  description: null,
  url: 'https://mcp.example/',
  status: 'active',
  toolsPolicy: 'accept',
  hasApiKey: false,
  headerNames: [],
  credentials: null,
  oauth: null,
  revision: 0,
  ...(toolColumns(tools) as unknown as Pick<McpServer, 'tools' | 'toolsBytes' | 'acceptedTools'>),
  protocol: null,
  toolsDiscoveredAt: new Date(),
  toolsExpireAt: new Date(Date.now() + 3_600_000),
  toolsChangedAt: null,
  toolsError: null,
  createdAt: new Date(),
  updatedAt: new Date(),
  ...more,
})

/** Returns the result of reading a server's tools. */
export const discovered = (tools: ListedTool[], more: Partial<Discovered> = {}): Discovered => ({
  tools,
  leftOut: [],
  ttlMs: undefined,
  protocol: { version: 'of a test' },
  ...more,
})

export type FakeMcp = McpClient & {
  /** How servers answer the question for their tools; a test sets it. */
  answer: (endpoint: McpEndpoint, signal: AbortSignal) => Promise<Discovered>
  /** Requests to servers, oldest first. */
  discoveries: McpEndpoint[]
  calls: { endpoint: McpEndpoint; call: McpCall }[]
}

/** Client of imaginary servers: none has a tool, and each call answers with its arguments. */
export function createFakeMcp(): FakeMcp {
  const fake: FakeMcp = {
    answer: async () => discovered([]),
    discoveries: [],
    calls: [],
    discover: (endpoint, signal) => {
      fake.discoveries.push(endpoint)
      return fake.answer(endpoint, signal)
    },
    visit: async () => {
      throw new Error('No test visits an imaginary server.')
    },
    call: async (endpoint, call) => {
      fake.calls.push({ endpoint, call })
      return { value: call.arguments }
    },
    close: async () => {},
  }
  return fake
}
