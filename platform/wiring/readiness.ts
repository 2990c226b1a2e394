import type { Readiness } from '../../domain/deps.ts'
import type { RedisClient } from '../../domain/kit/deps.ts'
import type { PrismaClient } from '../../prisma/generated/client.ts'
import type { Temporal } from '../temporal/temporal.ts'

const PING_TIMEOUT_MS = 2000
/** Longer than a request waits for a connection: a process is not ready when its requests are turned away. */
const POSTGRES_TIMEOUT_MS = 6000

/** Creates the check of a process, which is stopping once `stopping` has aborted. */
export const createReadiness =
  (db: PrismaClient, redis: RedisClient, temporal: Temporal, stopping: AbortSignal): Readiness =>
  async () => {
    const [postgres, redisState, temporalState] = await Promise.all([
      state(withLimit(db.$queryRaw`SELECT 1`, POSTGRES_TIMEOUT_MS)),
      state(withLimit(redis.ping())),
      state(temporal.ping(PING_TIMEOUT_MS)),
    ])
    const worker = temporal.workerState()
    return {
      postgres,
      redis: redisState,
      temporal: temporalState,
      ...(worker === undefined ? {} : { worker }),
      ...(stopping.aborted ? { process: 'stopping' as const } : {}),
    }
  }

const state = (probe: Promise<unknown>): Promise<string> =>
  probe.then(
    () => 'ok',
    () => 'no answer',
  )

async function withLimit<T>(probe: Promise<T>, ms = PING_TIMEOUT_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([probe, limit])
  } finally {
    clearTimeout(timer)
  }
}
