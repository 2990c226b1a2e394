import type { Redis } from 'ioredis'
import type { Logger } from 'pino'
import type { PrismaClient } from '../prisma/generated/client.ts'
import type { AuthSettings } from './auth/settings.ts'
import type { Capability } from './capabilities/capability.ts'
import type { TemporalHealthReader } from './durable/health.ts'
import type { EventBroker } from './events/event-broker.ts'
import type { EventIds } from './events/event-id.ts'
import type { ModelEnvironment } from './llm/catalog.ts'
import type { Retention } from './retention.ts'
import type { TurnControl, TurnStarter } from './turns/start.ts'

/** Everything the domain needs of the outside world; built once, in platform/wiring/build.ts. */
export type Deps = {
  log: Logger
  db: PrismaClient
  /** For short commands, which fail at once when Redis is away: nothing here may wait for it. */
  redis: { client: Redis /** Prefix of every key, so that deployments can share a server. */; prefix: string }
  auth: AuthSettings
  events: { ids: EventIds; broker: EventBroker }
  workflows: TurnControl & { startTurn: TurnStarter; readHealth: TemporalHealthReader }
  models: ModelEnvironment
  /** What agents and sessions may name; domain/capabilities/builtin/registry.ts has the service's own. */
  capabilities: Capability[]
  /** Whether tools may call addresses of private networks; true only where nobody is to be kept from them. */
  outgoing: { allowPrivateNetwork: boolean }
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

/** For each part of the outside world 'ok', or why it is not. */
export type Readiness = () => Promise<{ postgres: string; redis: string; temporal: string }>
