import type { Redis } from 'ioredis'
import type { Logger } from 'pino'
import type { Role } from '../contract/auth.ts'
import type { PrismaClient } from '../prisma/generated/client.ts'
import type { AuthSettings } from './auth/settings.ts'
import type { Capability } from './capabilities/capability.ts'
import type { EventIds } from './events/event-id.ts'
import type { EventHub } from './events/hub.ts'
import type { ModelEnvironment } from './llm/catalog.ts'
import type { TemporalHealthReader } from './monitoring/health.ts'
import type { Retention } from './retention.ts'
import type { TurnControl, TurnStarter } from './turns/start.ts'

/** Everything the domain needs of the outside world; built once, in platform/build.ts. */
export type Deps = {
  log: Logger
  db: PrismaClient
  /** For short commands. They fail at once when Redis is away: nothing here may wait for it. */
  redis: Redis
  auth: AuthSettings
  eventIds: EventIds
  hub: EventHub
  startTurn: TurnStarter
  turns: TurnControl
  readTemporalHealth: TemporalHealthReader
  models: ModelEnvironment
  /** What agents and sessions may name; domain/capabilities/registry.ts has the service's own. */
  capabilities: Capability[]
  /** Whether addresses of private networks may be called; true only where nobody is to be kept from them. */
  allowPrivateNetwork: boolean
  /** How many model calls a turn may make. */
  maxTurnIterations: number
  /** How long a turn waits for the results of a client's tools, in ms. */
  clientToolTimeoutMs: number
  /** How long a model may say nothing before its call counts as failed, in ms. */
  modelIdleTimeoutMs: number
  retention: Retention
  /** Prefixes every Redis key, so that deployments can share a server. */
  redisPrefix: string
}

/** Who asks, and in which organization: every query of the domain carries it. An API key is of that one only. */
export type Scope = { organizationId: string; userId: string; role: Role; isApiKey: boolean }

/** For each part of the outside world 'ok', or why it is not. */
export type Readiness = () => Promise<{ postgres: string; redis: string; temporal: string }>
