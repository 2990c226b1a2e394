import type { Socket } from 'node:net'
import pg from 'pg'
import type { Logger } from 'pino'
import { warnRarely } from '../../lib/warn-rarely.ts'

const LOOK_MS = 500
/** Silence of a statement after which Postgres is asked about it: longer than nearly all take. */
const SUSPICIOUS_MS = 1500
const ASK_LIMIT_MS = 2000

/**
 * Connection of the pool. `heardAt` is the time at which it has last carried something, `bytes` how much until then. Postgres is
 * asked about it once it has been silent for `patienceMs`.
 */
type Watched = { socket: Socket; bytes: number; heardAt: number; patienceMs: number; isInUse: boolean }
type Watch = { close(): void }

/**
 * Closes the pool's connections that have died without a word, as when a firewall has forgotten them or a host has
 * vanished: the operating system would notice after minutes. Asks Postgres, over a new connection, about statements that
 * take long: a statement that it does not run was lost, or its answer was. `options` are for that connection.
 */
export function closeDeadConnections(pool: pg.Pool, options: pg.ClientConfig, log: Logger): Watch {
  const watched = watchPool(pool)
  let isAsking = false
  const look = async () => {
    const now = performance.now()
    for (const one of watched.values()) note(one, now)
    const suspects = [...watched].filter(([client, one]) => isBusy(client) && now - one.heardAt > one.patienceMs)
    if (isAsking || suspects.length === 0) return
    isAsking = true
    try {
      const silent = suspects.map(([client, one]) => ({ client, one, process: processOf(client), bytes: one.bytes }))
      const lost = await findLost(
        options,
        silent.map(({ process }) => process),
      )
      const isDead = ({ client, one, process, bytes }: (typeof silent)[number]) =>
        lost.has(process) && isBusy(client) && bytes === sumOf(one.socket)
      for (const { one } of silent) one.patienceMs *= 2
      const dead = silent.filter(isDead).map(({ one }) => one)
      if (dead.length > 0) hangUp(dead, [...watched.values()])
    } catch (error) {
      warnRarely(log, { err: (error as Error).message }, 'Postgres could not be asked about silent connections')
    } finally {
      isAsking = false
    }
  }
  const timer = setInterval(() => void look(), LOOK_MS).unref()
  return { close: () => clearInterval(timer) }
}

function watchPool(pool: pg.Pool): Map<pg.PoolClient, Watched> {
  const watched = new Map<pg.PoolClient, Watched>()
  pool.on('connect', (client) => {
    // Typed as any stream, because a caller may supply one.
    const socket = client.connection.stream as Socket
    if (socket.destroyed) return
    watched.set(client, { socket, bytes: 0, heardAt: performance.now(), patienceMs: SUSPICIOUS_MS, isInUse: true })
    socket.once('close', () => watched.delete(client))
  })
  const use = (client: pg.PoolClient, isInUse: boolean) => Object.assign(watched.get(client) ?? {}, { isInUse })
  pool.on('acquire', (client) => use(client, true))
  pool.on('release', (_, client) => use(client, false))
  return watched
}

const sumOf = ({ bytesRead, bytesWritten }: Socket): number => bytesRead + bytesWritten

function note(one: Watched, now: number): void {
  const bytes = sumOf(one.socket)
  // What waits to be written counts as written.
  if (bytes === one.bytes && one.socket.writableLength === 0) return
  Object.assign(one, { bytes, heardAt: now, patienceMs: SUSPICIOUS_MS })
}

/** The driver's types lack both. */
const isBusy = (client: pg.PoolClient): boolean => Reflect.get(client, 'readyForQuery') === false
const processOf = (client: pg.PoolClient): number => Reflect.get(client, 'processID')

/** Returns the processes of Postgres that run no statement. A pooler's connections have none. */
async function findLost(options: pg.ClientConfig, processes: number[]): Promise<Set<number>> {
  const client = new pg.Client({ ...options, connectionTimeoutMillis: ASK_LIMIT_MS, query_timeout: ASK_LIMIT_MS })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity
       WHERE pid = ANY ($1::integer[]) AND state LIKE 'idle%' AND state_change < clock_timestamp() - interval '1 second'`,
      [processes],
    )
    return new Set(rows.map(({ pid }) => pid))
  } finally {
    // Not awaited: it waits for an answer that may never come.
    void client.end().catch(() => {})
    setTimeout(() => (client.connection.stream as Socket).destroy(), ASK_LIMIT_MS).unref()
  }
}

/** Closes dead connections, and the unused ones that have been silent for as long: they may share the fate. */
function hangUp(dead: Watched[], all: Watched[]): void {
  const since = Math.max(...dead.map(({ heardAt }) => heardAt))
  const unused = all.filter(({ isInUse, heardAt }) => !isInUse && heardAt <= since)
  for (const { socket } of [...dead, ...unused]) socket.destroy(new Error('Postgres does not know of the statement'))
}
