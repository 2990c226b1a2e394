import type { Logger } from 'pino'
import { builtinCapabilities } from '../../domain/capabilities/builtin/registry.ts'
import type { Deps, Readiness } from '../../domain/deps.ts'
import { createEventBroker } from '../../domain/events/event-broker.ts'
import { createEventIds } from '../../domain/events/event-id.ts'
import type { Config } from '../config.ts'
import { applyMigrations } from '../migrate.ts'
import { connectPostgres, sharedKey } from '../postgres.ts'
import { connectBlockingRedis, connectRedis } from '../redis.ts'
import { connectTemporal, type Temporal } from '../temporal.ts'
import { createAuth } from './auth.ts'

/** What one process holds of the outside world. */
export type Platform = { deps: Deps; temporal: Temporal; readiness: Readiness; close(): Promise<void> }

const CHECK_MS = 5000
const CHECK_WITHOUT_REDIS_MS = 500
const PING_TIMEOUT_MS = 2000
const MIGRATE_ATTEMPTS = 30

/** Applies migrations and connects. Postgres has to be there; Redis and Temporal may come later. */
export async function buildPlatform(config: Config, log: Logger): Promise<Platform> {
  await migrate(config.DATABASE_URL, log)
  const { db, close: closePostgres } = connectPostgres(config, log)
  const redis = connectRedis(config.REDIS_URL, log)
  const reader = connectBlockingRedis(config.REDIS_URL, log)
  const temporal = connectTemporal(config, log)
  const broker = createEventBroker({
    reader,
    db,
    log,
    prefix: config.REDIS_PREFIX,
    checkMs: CHECK_MS,
    checkWithoutRedisMs: CHECK_WITHOUT_REDIS_MS,
  })
  const deps: Deps = {
    log,
    db,
    redis: { client: redis, prefix: config.REDIS_PREFIX },
    events: { ids: createEventIds(await sharedKey(db, 'event_ids')), broker },
    auth: createAuth(config, await sharedKey(db, 'tokens'), log),
    workflows: {
      startTurn: temporal.startTurn,
      resumeTurn: temporal.resumeTurn,
      cancelTurn: temporal.cancelTurn,
      isTurnRunning: temporal.isTurnRunning,
      readHealth: temporal.readHealth,
    },
    models: {
      openaiApiKey: config.DEFAULT_OPENAI_API_KEY,
      openaiBaseUrl: config.DEFAULT_OPENAI_BASE_URL,
      openaiModel: config.DEFAULT_OPENAI_MODEL,
    },
    capabilities: builtinCapabilities,
    outgoing: { allowPrivateNetwork: config.ALLOW_PRIVATE_NETWORK },
    limits: {
      maxTurnIterations: config.MAX_TURN_ITERATIONS,
      clientToolTimeoutMs: config.CLIENT_TOOL_TIMEOUT * 1000,
      modelIdleTimeoutMs: config.LLM_IDLE_TIMEOUT_SECS * 1000,
    },
    retention: {
      deltasMs: config.DELTA_RETENTION_SECS * 1000,
      idempotencyKeysMs: config.IDEMPOTENCY_KEY_RETENTION_SECS * 1000,
    },
  }
  return {
    deps,
    temporal,
    readiness: async () => {
      const [postgres, redisState, temporalState] = await Promise.all([
        state(withLimit(db.$queryRaw`SELECT 1`)),
        state(withLimit(redis.ping())),
        state(temporal.ping(PING_TIMEOUT_MS)),
      ])
      return { postgres, redis: redisState, temporal: temporalState }
    },
    close: async () => {
      await broker.close()
      redis.disconnect()
      await Promise.allSettled([temporal.close(), closePostgres()])
    },
  }
}

/** A database that is away or still starting is waited for; anything else stops the start. */
async function migrate(databaseUrl: string, log: Logger): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const applied = await applyMigrations(databaseUrl)
      if (applied.length > 0) log.info({ applied }, 'migrations applied')
      return
    } catch (error) {
      if (attempt >= MIGRATE_ATTEMPTS || !isAway(error)) throw error
      log.warn(
        { err: (error as Error).message.slice(0, 300), attempt },
        'migrations could not be applied; trying again',
      )
      await new Promise((resolve) => setTimeout(resolve, 1000))
    }
  }
}

/** Refused, reset, not found, timed out, or Postgres's own "starting up" and "shutting down" (class 57P). */
const isAway = (error: unknown): boolean => {
  const code = String((error as { code?: unknown }).code ?? '')
  return (
    /^(ECONN|ENOTFOUND|EAI_|ETIMEDOUT|EHOST|57P)/.test(code) || /timeout|terminated/i.test((error as Error).message)
  )
}

const state = (probe: Promise<unknown>): Promise<string> =>
  probe.then(
    () => 'ok',
    () => 'no answer',
  )

async function withLimit<T>(probe: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${PING_TIMEOUT_MS} ms`)), PING_TIMEOUT_MS)
  })
  try {
    return await Promise.race([probe, limit])
  } finally {
    clearTimeout(timer)
  }
}
