import type { Redis } from 'ioredis'
import type { Logger } from 'pino'
import type { GuardOptions } from '../../lib/outgoing/guard.ts'
import type { PrismaClient } from '../../prisma/generated/client.ts'
import type { Owners } from './owners.ts'
import type { Secrets } from './secrets.ts'
import type { DocumentThreads } from './yaml/threads.ts'

/**
 * What the domain needs from the outside world. Each room adds what it needs itself to what the rooms below it need; what
 * all need together is built once, in platform/wiring/build.ts.
 */
export type Deps = {
  log: Logger
  db: PrismaClient
  /** Client for short commands, which fail at once when Redis is unavailable: the domain must not wait for it. */
  redis: { client: Redis /** Prefix of every key, so that deployments can share a server. */; prefix: string }
  owners: Owners
  secrets: Secrets
  /** Addresses that may be called. Those of private networks only where no user has to be kept from them. */
  outgoing: GuardOptions
  /** Threads for work that untrusted input can make long, started when needed. */
  threads: { documents: DocumentThreads }
  /** Classifies an error of a dependency that is overloaded or does not answer. Undefined for any other error. */
  unavailability: (error: unknown) => 'overloaded' | 'away' | undefined
  retention: { idempotencyKeysMs: number }
}
