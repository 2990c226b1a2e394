import type { Redis } from 'ioredis'
import type { Logger } from 'pino'
import type { PrismaClient } from '../prisma/generated/client.ts'
import type { DocumentThreads } from './agents/document/threads.ts'
import type { AuthSettings } from './auth/settings.ts'
import type { SchemaThreads } from './capabilities/arguments/threads.ts'
import type { Capability } from './capabilities/capability.ts'
import type { WebPageThreads } from './capabilities/web-page/threads.ts'
import type { TemporalHealthReader } from './durable/health.ts'
import type { EventBroker } from './events/event-broker.ts'
import type { EventIds } from './events/event-id.ts'
import type { ContextMemo } from './events/present.ts'
import type { SessionLines } from './events/session-lines.ts'
import type { ModelEnvironment } from './llm/catalog.ts'
import type { TurnControl, TurnStarter } from './turns/turn-workflows.ts'

/** Everything the domain needs of the outside world; built once, in platform/wiring/build.ts. */
export type Deps = {
  log: Logger
  db: PrismaClient
  /** For short commands, which fail at once when Redis is away: nothing here may wait for it. */
  redis: { client: Redis /** Prefix of every key, so that deployments can share a server. */; prefix: string }
  auth: AuthSettings
  events: { ids: EventIds; broker: EventBroker; lines: SessionLines; lastContext: ContextMemo }
  workflows: TurnControl & { startTurn: TurnStarter; readHealth: TemporalHealthReader }
  models: ModelEnvironment
  /** What agents and sessions may name; domain/capabilities/builtin/registry.ts has the service's own. */
  capabilities: Capability[]
  /** Whether tools may call addresses of private networks; true only where nobody is to be kept from them. */
  outgoing: { allowPrivateNetwork: boolean }
  /** Threads for work that strangers can make long, started when needed. */
  threads: { documents: DocumentThreads; schemas: SchemaThreads; pages: WebPageThreads }
  /** Tells an error of a part of the outside world that does not answer from every other; undefined for the others. */
  unavailability: (error: unknown) => 'overloaded' | 'away' | undefined
  limits: TurnLimits
  retention: Retention
}

export type TurnLimits = {
  /** Model calls of a turn. */
  maxTurnIterations: number
  /** How long a turn waits for the results of a client's tools. */
  clientToolTimeoutMs: number
  /** How long a model may say nothing before its call counts as failed. */
  modelIdleTimeoutMs: number
}

/** How long things are kept; deltas from the moment on that their message is complete. */
export type Retention = { deltasMs: number; idempotencyKeysMs: number }

/** For each part of the outside world 'ok', or why it is not. */
export type Readiness = () => Promise<{ postgres: string; redis: string; temporal: string }>
