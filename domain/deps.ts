import type { Redis } from 'ioredis'
import type { Logger } from 'pino'
import type { FairQueue } from '../lib/fair-queue.ts'
import type { GuardOptions } from '../lib/outgoing/guard.ts'
import type { OwnerPlaces } from '../lib/owner-places.ts'
import type { PrismaClient } from '../prisma/generated/client.ts'
import type { AuthSettings } from './auth/settings.ts'
import type { SchemaThreads } from './capabilities/arguments/threads.ts'
import type { Capability } from './capabilities/capability.ts'
import type { BashProcesses } from './capabilities/virtual-bash/processes.ts'
import type { WebPageThreads } from './capabilities/web-page/threads.ts'
import type { ConversationCache } from './conversation/conversation-cache.ts'
import type { ImageCache } from './conversation/image-cache.ts'
import type { DatabaseStore } from './databases/database-store.ts'
import type { Keeper } from './databases/keeper/keeper.ts'
import type { TemporalHealthReader } from './durable/health.ts'
import type { EventBroker } from './events/event-broker.ts'
import type { EventIds } from './events/event-id.ts'
import type { ContextMemo } from './events/present.ts'
import type { AppendGroups } from './events/record.ts'
import type { SessionLines } from './events/session-lines.ts'
import type { FileStore } from './files/file-store.ts'
import type { GrepThreads } from './files/grep/threads.ts'
import type { ImageChunks } from './images/chunk-store.ts'
import type { Provider } from './llm/catalogue.ts'
import type { PredefinedProvider } from './llm/predefined.ts'
import type { McpClient } from './mcp/client.ts'
import type { Discoveries } from './mcp-servers/discoveries.ts'
import type { Owners } from './owners.ts'
import type { Clock } from './schedules/clock.ts'
import type { ExecutionControl } from './schedules/execution-workflows.ts'
import type { Secrets } from './secrets.ts'
import type { ArchiveThreads } from './skills/archive/threads.ts'
import type { RunningAttempts } from './turns/run/running-attempts.ts'
import type { TurnControl, TurnStarter } from './turns/turn-workflows.ts'
import type { DocumentThreads } from './yaml/threads.ts'

/** Everything that the domain needs from the outside world. Built once, in platform/wiring/build.ts. */
export type Deps = {
  log: Logger
  db: PrismaClient
  /** Client for short commands, which fail at once when Redis is unavailable: the domain must not wait for it. */
  redis: { client: Redis /** Prefix of every key, so that deployments can share a server. */; prefix: string }
  auth: AuthSettings
  owners: Owners
  secrets: Secrets
  events: {
    ids: EventIds
    broker: EventBroker
    lines: SessionLines
    /** Appends that may be committed together. */
    groups: AppendGroups
    lastContext: ContextMemo
  }
  workflows: TurnControl & ExecutionControl & { startTurn: TurnStarter; readHealth: TemporalHealthReader }
  /** Attempts at reason steps in this process. */
  attempts: RunningAttempts
  /** The clock of the schedules. */
  clock: Clock
  models: {
    /** Providers that every organization has. */
    predefined: PredefinedProvider[]
    /** Returns the fetch that may call a provider: addresses of the environment are trusted, others are checked. */
    fetchOf: (provider: Pick<Provider, 'isPredefined'>) => typeof globalThis.fetch
  }
  /** The service's own capabilities; those of an organization are in the record (domain/capability-registry/). */
  capabilities: Capability[]
  /** Addresses that may be called. Those of private networks only where no user has to be kept from them. */
  outgoing: GuardOptions
  fileStore: FileStore
  /** Changes of a session's files, one at a time in this process. */
  fileLines: SessionLines
  /** Queue of the process for reading whole files for tools. */
  fileReads: FairQueue
  /** Places of the process for downloads of all files of a session. */
  zipPlaces: OwnerPlaces
  /** Connections to MCP servers. */
  mcp: McpClient
  /** Reading of MCP servers' tools in this process, in the background too. */
  mcpDiscoveries: Discoveries
  databaseStore: DatabaseStore
  /** Runs the SQL of databases of sessions. */
  databaseKeeper: Keeper
  /** Bytes of uploaded images. */
  imageChunks: ImageChunks
  /** Beginnings of the conversations in which turns lately began. */
  conversations: ConversationCache
  /** Images as models were lately given them. */
  images: ImageCache
  /** Queue of the process for loading and scaling images of messages. */
  imageLoads: FairQueue
  /** Queue of the process for searches in files. */
  grepSlots: FairQueue
  /** Queue of the process for unpacking and storing archives of skills. */
  archiveSlots: FairQueue
  /** Threads for work that untrusted input can make long, started when needed. */
  threads: {
    documents: DocumentThreads
    schemas: SchemaThreads
    pages: WebPageThreads
    greps: GrepThreads
    archives: ArchiveThreads
  }
  bash: BashProcesses
  /** Classifies an error of a dependency that is overloaded or does not answer. Undefined for any other error. */
  unavailability: (error: unknown) => 'overloaded' | 'away' | undefined
  limits: TurnLimits
  quotas: Quotas
  retention: Retention
}

export type TurnLimits = {
  /** Limit on the model calls of a turn. */
  maxTurnIterations: number
  /** Time that a turn waits for the results of a client's tools. */
  clientToolTimeoutMs: number
  /** Time that a model may send nothing before its call counts as failed. */
  modelIdleTimeoutMs: number
  /** Number of model calls that a process makes at once, of which one owner gets four fifths. */
  maxModelCalls: number
  /** Time limit of a model call. */
  modelCallMs: number
  /** Age of a turn, without the time in which it waits for its client, beyond which it makes no further model call. */
  maxTurnMs: number
}

/**
 * Maximum numbers: providers, skills and MCP servers of an organization, models of each provider, images of an
 * organization, files of a session, values and secrets of a session.
 */
export type Quotas = {
  llmProviders: number
  llmModels: number
  skills: number
  mcpServers: number
  schedules: ScheduleQuotas
  images: ImageQuotas
  files: FileQuotas
  storage: StorageQuotas
}

/** Maximum number of an organization's schedules, and of its executions that run at once. */
export type ScheduleQuotas = { maxCount: number; maxRunning: number }

/** Maximum number of a session's values, and of its secrets; maximum size of both together, as they are stored. */
export type StorageQuotas = { maxCount: number; maxTotalBytes: number }

/** Maximum size of a file; maximum number and size of a session's files and directories together. */
export type FileQuotas = { maxBytes: number; maxCount: number; maxTotalBytes: number }

/** Maximum size of an image; maximum number and size of an organization's images together. */
export type ImageQuotas = { maxBytes: number; maxCount: number; maxTotalBytes: number }

/**
 * Retention times. Those of deltas count from the moment at which their message is complete, those of executions from
 * when they were recorded.
 */
export type Retention = { deltasMs: number; idempotencyKeysMs: number; executionsMs: number }

/** Checks each dependency: 'ok', or the reason why it is not. */
export type Readiness = () => Promise<{ postgres: string; redis: string; temporal: string; worker?: string }>
