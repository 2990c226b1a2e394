import type { Socket } from 'node:net'
import pg from 'pg'
import type { Logger } from 'pino'
import { warnRarely } from '../../lib/warn-rarely.ts'

const LOOK_MS = 500
/** Silence of a statement after which Postgres is asked about it: longer than nearly all take. */
const SUSPICIOUS_MS = 1500
const ASK_LIMIT_MS = 2000

/** `heardAt` is the time at which its socket has last carried something. */
type Watched = { socket: Socket; bytes: number; heardAt: number }
type Watch = { close(): void }

/**
 * Closes the pool's connections that have died without a word, as when a firewall has forgotten them or a host has
 * vanished: the operating system would notice after minutes. Asks Postgres, over a new connection, about statements that
 * take long: a statement that it does not run was lost, or its answer was. `options` are for that connection.
 */
export function closeDeadConnections(pool: pg.Pool, options: pg.ClientConfig, log: Logger): Watch {
  const watched = new Map<pg.PoolClient, Watched>()
  pool.on('connect', (client) => {
    // Typed as any stream, because a caller may supply one.
    const socket = client.connection.stream as Socket
    watched.set(client, { socket, bytes: 0, heardAt: performance.now() })
    socket.once('close', () => watched.delete(client))
  })
  let isAsking = false
  const look = async () => {
    const now = performance.now()
    for (const one of watched.values()) note(one, now)
    const suspects = [...watched].filter(([client, { heardAt }]) => isBusy(client) && now - heardAt > SUSPICIOUS_MS)
    if (isAsking || suspects.length === 0) return
    isAsking = true
    try {
      const lost = await findLost(
        options,
        suspects.map(([client]) => processOf(client)),
      )
      const dead = suspects.filter(
        ([client, { socket, bytes }]) => lost.has(processOf(client)) && bytes === sumOf(socket),
      )
      if (dead.length > 0) hangUp(dead, watched)
    } catch (error) {
      warnRarely(log, { err: (error as Error).message }, 'Postgres could not be asked about silent connections')
    } finally {
      isAsking = false
    }
  }
  const timer = setInterval(() => void look(), LOOK_MS).unref()
  return { close: () => clearInterval(timer) }
}

const sumOf = ({ bytesRead, bytesWritten }: Socket): number => bytesRead + bytesWritten

function note(one: Watched, now: number): void {
  const bytes = sumOf(one.socket)
  if (bytes === one.bytes) return
  one.bytes = bytes
  one.heardAt = now
}

/** The driver's types lack both. */
const isBusy = (client: pg.PoolClient): boolean => Reflect.get(client, 'readyForQuery') === false
const processOf = (client: pg.PoolClient): number => Reflect.get(client, 'processID')

/** Returns the processes of Postgres that run no statement, or are gone. */
async function findLost(options: pg.ClientConfig, processes: number[]): Promise<Set<number>> {
  const client = new pg.Client({
    ...options,
    connectionTimeoutMillis: ASK_LIMIT_MS,
    query_timeout: ASK_LIMIT_MS,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ pid: number }>(
      `SELECT pid FROM unnest($1::integer[]) AS asked (pid) LEFT JOIN pg_stat_activity AS running USING (pid)
       WHERE running.datid IS NULL OR (state LIKE 'idle%' AND state_change < clock_timestamp() - interval '1 second')`,
      [processes],
    )
    return new Set(rows.map(({ pid }) => pid))
  } finally {
    await client.end().catch(() => {})
  }
}

/** Closes dead connections, and the unused ones that have been silent for as long: they may share the fate. */
function hangUp(dead: [pg.PoolClient, Watched][], watched: Map<pg.PoolClient, Watched>): void {
  const since = Math.max(...dead.map(([, { heardAt }]) => heardAt))
  const unused = [...watched].filter(([client, { heardAt }]) => !isBusy(client) && heardAt <= since)
  for (const [, { socket }] of [...dead, ...unused])
    socket.destroy(new Error('Postgres does not know of the statement'))
}
