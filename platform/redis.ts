import { Redis } from 'ioredis'
import type { Logger } from 'pino'
import { warnRarely } from '../lib/warn-rarely.ts'

const CONNECT_TIMEOUT_MS = 3000
const COMMAND_TIMEOUT_MS = 2000
/** Socket timeout, longer than the longest blocking XREAD. */
const SILENCE_MS = 5000
const MAX_RECONNECT_DELAY_MS = 1000

const options = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  // A frozen server, or one behind a network that drops all packets, counts as away.
  socketTimeout: SILENCE_MS,
  retryStrategy: (attempt: number) => Math.min(50 * attempt, MAX_RECONNECT_DELAY_MS),
  // Commands must not queue up while Redis is away: Postgres holds the record without them.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResubscribe: false,
  // RESP3 answers XREAD with a flat map; with RESP2 every server answers with pairs.
  protocol: 2,
} as const

/** Connects a client for short commands, which fail at once while Redis is away. */
export function connectRedis(url: string, log: Logger): Redis {
  return logged(new Redis(url, { ...options, commandTimeout: COMMAND_TIMEOUT_MS }), log)
}

/** Connects a client for a loop of blocking XREADs, and therefore without a command timeout. */
export function connectBlockingRedis(url: string, log: Logger): Redis {
  return logged(new Redis(url, options), log)
}

function logged(redis: Redis, log: Logger): Redis {
  redis.on('error', (error: Error) => warnRarely(log, { err: error.message }, 'redis is away'))
  return redis
}
