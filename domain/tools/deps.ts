import type { FairQueue } from '../../lib/fair-queue.ts'
import type { Deps as Below } from '../session-data/deps.ts'
import type { SchemaThreads } from './capabilities/arguments/threads.ts'
import type { Capability } from './capabilities/capability.ts'
import type { BashProcesses } from './capabilities/virtual-bash/processes.ts'
import type { WebPageThreads } from './capabilities/web-page/threads.ts'
import type { McpClient } from './mcp/protocol/client.ts'
import type { Discoveries } from './mcp-servers/discoveries.ts'
import type { ArchiveThreads } from './skills/archive/threads.ts'
import type { Sealing } from './task-queues/sealing.ts'

export type Deps = Below & {
  /** The service's own capabilities; an organization's are in the record (`registry/`). */
  capabilities: Capability[]
  /** Connections to MCP servers. */
  mcp: McpClient
  /** Discoveries of MCP servers' tools in this process, including background ones. */
  mcpDiscoveries: Discoveries
  /** Requests of this process for resources and prompts of MCP servers. */
  mcpVisits: FairQueue
  /** Address of the API for browsers, without a trailing slash, to which sign-ins at MCP servers return. */
  apiUrl: string
  bash: BashProcesses
  /** Encryption of what the workers of organizations exchange with the service. */
  sealing: Sealing
  /** Task queue of the service itself. */
  ownTaskQueue: string
  /** Queue of this process for unpacking and storing archives of skills. */
  archiveSlots: FairQueue
  threads: { schemas: SchemaThreads; pages: WebPageThreads; archives: ArchiveThreads }
  /** Maximum numbers of an organization's skills and MCP servers. */
  quotas: { skills: number; mcpServers: number }
}
