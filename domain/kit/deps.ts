import type { Cluster, Redis } from 'ioredis'
import type { Logger } from 'pino'
import type { GuardOptions } from '../../lib/outgoing/guard.ts'
import type { PrismaClient } from '../../prisma/generated/client.ts'
import type { Metrics } from './metrics.ts'
import type { Owners } from './owners.ts'
import type { Secrets } from './secrets.ts'
import type { Tracing } from './tracing.ts'
import type { DocumentThreads } from './yaml/threads.ts'

/** One server, its primary, or a cluster. */
export type RedisClient = Redis | Cluster

/**
 * Dependencies of the whole domain. Each room extends the dependencies of the rooms below it. Shared ones are built
 * once, in platform/wiring/build.ts.
 */
export type Deps = {
  log: Logger
  db: PrismaClient
  /** Client for short commands, which fail at once while Redis is unavailable. */
  redis: { client: RedisClient /** Prefix of every key, so that deployments can share a server. */; prefix: string }
  owners: Owners
  /** Undefined when nobody measures this process. */
  metrics: Metrics | undefined
  tracing: Tracing
  secrets: Secrets
  /** Addresses that the service may call. Includes private networks only if all users are trusted with them. */
  outgoing: GuardOptions
  /** Threads for work that untrusted input can make slow, started on demand. */
  threads: { documents: DocumentThreads }
  /** Classifies an error of an overloaded or unreachable dependency. Undefined for other errors. */
  unavailability: (error: unknown) => 'overloaded' | 'away' | undefined
  retention: { idempotencyKeysMs: number }
}
