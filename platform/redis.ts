import { Redis } from 'ioredis'
import type { Logger } from 'pino'

const CONNECT_TIMEOUT_MS = 3000
const COMMAND_TIMEOUT_MS = 2000
/** Longer than the longest XREAD blocks. */
const SILENCE_MS = 5000
const MOST_RECONNECT_DELAY_MS = 1000

const options = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  // A server that is frozen, or behind a network that swallows everything, counts as away.
  socketTimeout: SILENCE_MS,
  retryStrategy: (attempt: number) => Math.min(50 * attempt, MOST_RECONNECT_DELAY_MS),
  // Nothing may queue up while Redis is away: the record does not need it.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResubscribe: false,
  // RESP3 answers XREAD with a flat map; the pairs of RESP2 come from every server.
  protocol: 2,
} as const

/** For short commands: each fails at once while Redis is away. */
export function connectRedis(url: string, log: Logger): Redis {
  return logged(new Redis(url, { ...options, commandTimeout: COMMAND_TIMEOUT_MS }), log)
}

/** For a loop that blocks in XREAD, so without a limit on how long a command takes. */
export function connectBlockingRedis(url: string, log: Logger): Redis {
  return logged(new Redis(url, options), log)
}

function logged(redis: Redis, log: Logger): Redis {
  let hasLogged = ''
  redis.on('error', (error: Error) => {
    if (error.message === hasLogged) return
    hasLogged = error.message
    log.warn({ err: error.message }, 'redis is away')
  })
  redis.on('ready', () => {
    hasLogged = ''
  })
  return redis
}
