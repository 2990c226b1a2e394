import { Cluster, Redis } from 'ioredis'
import type { Logger } from 'pino'
import type { RedisClient } from '../domain/kit/deps.ts'
import { warnRarely } from '../lib/warn-rarely.ts'
import { readAuthorities, tlsFailure } from './certificates.ts'
import type { Config } from './config.ts'
import { ConfigError } from './config-error.ts'

/** How Redis is reached. */
export type RedisSettings = Pick<Config, 'REDIS_URL'> &
  Partial<Pick<Config, 'REDIS_CA_FILE' | 'REDIS_CLUSTER' | 'REDIS_SENTINEL_NAME' | 'REDIS_SENTINEL_PASSWORD'>>

const CONNECT_TIMEOUT_MS = 3000
const COMMAND_TIMEOUT_MS = 2000
/** Socket timeout, longer than the longest blocking XREAD. */
const SILENCE_MS = 5000
const MAX_RECONNECT_DELAY_MS = 1000
/** Attempts of a command in a cluster, 100 ms apart while a node is away. */
const MAX_REDIRECTIONS = 4
const DEFAULT_PORT = 6379

const retryDelayMs = (attempt: number) => Math.min(50 * attempt, MAX_RECONNECT_DELAY_MS)

const options = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  // A frozen server, or one behind a network that drops all packets, counts as away.
  socketTimeout: SILENCE_MS,
  retryStrategy: retryDelayMs,
  // Commands must not queue up while Redis is away: Postgres holds the record without them.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResubscribe: false,
  // RESP3 answers XREAD with a flat map; with RESP2 every server answers with pairs.
  protocol: 2,
} as const

/** Makes connections to Redis. */
export type RedisConnector = {
  /** Connects a client for short commands, which fail at once while Redis is away. */
  connect(log: Logger): RedisClient
  /**
   * Connects clients for loops of blocking XREADs, and therefore without a command timeout: one, or in a cluster one for
   * each of `streams` keys.
   */
  connectReaders(log: Logger, streams: number): RedisClient[]
}

/** Reads the settings. Throws ConfigError when they are wrong; whether Redis answers shows later. */
export function redisConnector(settings: RedisSettings): RedisConnector {
  const { connect, connectNode } = clientMaker(settings)
  return {
    connect: (log) => logged(connect({ ...options, commandTimeout: COMMAND_TIMEOUT_MS }), log, connectNode),
    connectReaders: (log, streams) =>
      Array.from({ length: settings.REDIS_CLUSTER ? streams : 1 }, () => logged(connect(options), log)),
  }
}

type Options = typeof options & { commandTimeout?: number }

type ClientMaker = {
  connect(options: Options): RedisClient
  /** Connects to the first node of a cluster alone, once, when told to. */
  connectNode?(): Redis
}

function clientMaker(settings: RedisSettings): ClientMaker {
  const { REDIS_URL: url, REDIS_SENTINEL_NAME: name, REDIS_SENTINEL_PASSWORD: sentinelPassword } = settings
  const ca = settings.REDIS_CA_FILE && readAuthorities(settings.REDIS_CA_FILE, 'REDIS_CA_FILE')
  const tls = url.startsWith('rediss:') && { tls: ca ? { ca } : {} }
  if (ca && !tls) throw new ConfigError('REDIS_CA_FILE: is for TLS, so REDIS_URL must begin with rediss://')
  if (!settings.REDIS_CLUSTER && name === undefined) {
    if (url.includes(',')) throw new ConfigError('REDIS_URL: several hosts need REDIS_CLUSTER or REDIS_SENTINEL_NAME')
    return { connect: (own) => new Redis(url, { ...own, ...tls }) }
  }
  const { nodes, login, db } = readHosts(url)
  if (settings.REDIS_CLUSTER) {
    const redisOptions = { ...login, ...tls }
    return {
      connect: (own) =>
        new Cluster(nodes, {
          enableOfflineQueue: false,
          maxRedirections: MAX_REDIRECTIONS,
          clusterRetryStrategy: retryDelayMs,
          // Certificates name hosts, so that names must stay.
          dnsLookup: (address, callback) => callback(null, address),
          redisOptions: { ...own, ...redisOptions },
        }),
      connectNode: () =>
        new Redis({ ...options, ...nodes[0], ...redisOptions, lazyConnect: true, retryStrategy: null }),
    }
  }
  const sentinelTls = tls && { sentinelTLS: tls.tls, enableTLSForSentinelMode: true }
  const ofSentinels = { sentinels: nodes, name, sentinelRetryStrategy: retryDelayMs, ...sentinelTls }
  return {
    connect: (own) =>
      new Redis({ ...own, ...login, db, ...tls, ...ofSentinels, ...(sentinelPassword && { sentinelPassword }) }),
  }
}

/** Reads `redis://user:password@host:port,host:port/0`. */
function readHosts(url: string) {
  const [, scheme, login = '', hosts = '', path = ''] = /^(rediss?:\/\/)([^@/]*@)?([^/]+)(\/\d*)?$/.exec(url) ?? []
  try {
    const [first, ...rest] = hosts.split(',').map((host) => new URL(`${scheme}${login}${host.trim()}${path}`))
    if (first === undefined) throw new Error('no host')
    const nodes = [first, ...rest].map(({ hostname, port }) => ({
      host: hostname.replace(/^\[(.*)\]$/, '$1'),
      port: Number(port || DEFAULT_PORT),
    }))
    const [username, password] = [first.username, first.password].map(decodeURIComponent)
    return {
      nodes,
      login: { ...(username && { username }), ...(password && { password }) },
      db: Number(path.slice(1) || 0),
    }
  } catch {
    throw new ConfigError('REDIS_URL: must be hosts such as redis://user:password@host:6379,host:6379')
  }
}

function logged(redis: RedisClient, log: Logger, connectNode?: () => Redis): RedisClient {
  const warn = (err: string) => warnRarely(log, { err }, 'redis is away')
  if (!redis.isCluster) return surviving(redis as Redis).on('error', (error: Error) => warn(describe(error)))
  const cluster = redis as Cluster
  cluster.on('+node', surviving)
  const warnOf = (error: Error & { lastNodeError?: Error }) => {
    const cause = error.lastNodeError ?? error
    if (cause.message !== HIDDEN) warn(describe(cause))
  }
  cluster.on('error', warnOf)
  cluster.on('node error', warnOf)
  // The only sign of a cluster without all its slots, or of one whose nodes refuse the connection.
  if (connectNode) cluster.on('reconnecting', () => void askNode(connectNode()).then(warn))
  return cluster
}

/**
 * Has a connection survive further errors of its socket, such as TLS alerts after a refused certificate: ioredis listens
 * to the first only, and another one would end the process.
 */
const surviving = (redis: Redis): Redis => redis.on('error', () => redis.stream?.on('error', () => {}))

/** Message with which a cluster hides why a node cannot be reached. */
const HIDDEN = 'Connection is closed.'

/** Returns the reason for which a cluster is not ready, as one node of it shows. */
function askNode(redis: Redis): Promise<string> {
  return new Promise((resolve) => {
    surviving(redis).on('error', (error: Error) => resolve(describe(error)))
    redis.on('ready', () => resolve('the cluster is not ready'))
    redis.on('end', () => resolve(HIDDEN))
    redis
      .connect()
      .catch(() => {})
      .finally(() => redis.disconnect())
  })
}

function describe(error: Error): string {
  const reason = tlsFailure(error, 'name its authority in REDIS_CA_FILE')
  return reason === undefined ? error.message : `REDIS_URL: ${reason}`
}
