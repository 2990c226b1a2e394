import { Redis } from 'ioredis'
import pg from 'pg'
import type { Service } from '../../dev/services/index.ts'
import { waitFor } from '../support/http.ts'
import { type PrivateService, privatePostgres, privateRedis, privateTemporal } from '../support/private-services.ts'
import { familyOf, signal, startAgain } from '../support/storm-site.ts'
import { mountDisk } from './disk.ts'

/** A server that faults take away and bring back, at the same address and with its data. */
export type Server = {
  url: string
  isUp(): boolean
  /** Ends it like a power cut. */
  kill(): Promise<void>
  /** Starts it unless it runs. */
  start(): Promise<void>
  close(): Promise<void>
}

export type Servers = Record<'postgres' | 'redis' | 'temporal', Server> & {
  flushRedis(): Promise<void>
  /** Whether the disk of Postgres can be filled here. */
  canFillDisk: boolean
  /** Leaves Postgres no room on its disk, and Redis no memory. */
  fill(): Promise<void>
  /** Gives the room back, and has Postgres answer again. */
  empty(): Promise<void>
  close(): Promise<void>
}

const RECOVERY_MS = 30_000

export async function startServers(): Promise<Servers> {
  const places = { postgres: privatePostgres(), redis: privateRedis(), temporal: privateTemporal() }
  const disk = await mountDisk(places.postgres.dataDir)
  const [postgres, redis, temporal] = await Promise.all([
    startServer(places.postgres, disk.remove),
    startServer(places.redis),
    startServer(places.temporal),
  ])
  const askRedis = async (...command: [string, ...string[]]) => {
    const client = new Redis(redis.url, { maxRetriesPerRequest: 0, retryStrategy: () => null })
    client.on('error', () => {})
    // It may be away, and then has nothing to flush or to fill.
    await client.call(...command).catch(() => {})
    client.disconnect()
  }
  return {
    ...{ postgres, redis, temporal },
    canFillDisk: disk.canFill,
    flushRedis: () => askRedis('FLUSHALL'),
    fill: async () => {
      await Promise.all([disk.fill(), askRedis('CONFIG', 'SET', 'maxmemory', '1')])
    },
    empty: async () => {
      await Promise.all([disk.empty(), askRedis('CONFIG', 'SET', 'maxmemory', '0')])
      // It ends when it cannot write its log, and may be about to.
      const answers = async () => {
        await postgres.start()
        return runSql(postgres.url, ['SELECT 1']).then(
          () => true,
          () => false,
        )
      }
      await waitFor(answers, 'Postgres to answer', RECOVERY_MS)
    },
    close: async () => {
      await Promise.all([postgres, redis, temporal].map((server) => server.close()))
    },
  }
}

async function startServer(place: PrivateService<Service>, release = async () => {}): Promise<Server> {
  let running: Service | undefined
  let starting: Promise<void> | undefined
  const start = async () => {
    const service = await startAgain(place)
    running = service
    void service.exited.then(() => {
      if (running === service) running = undefined
    })
  }
  await start()
  return {
    url: running === undefined ? '' : (running as Service).url,
    isUp: () => running !== undefined,
    kill: async () => {
      const killed = running
      if (killed === undefined) return
      const family = await familyOf(killed.pid)
      running = undefined
      await killed.kill()
      signal(family, 'SIGKILL')
    },
    start: async () => {
      if (running !== undefined) return
      starting ??= start().finally(() => {
        starting = undefined
      })
      await starting
    },
    close: async () => {
      await running?.stop()
      await release()
      await place.remove()
    },
  }
}

/** Runs SQL on a server. */
export async function runSql(url: string, statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  // A connection that breaks fails the statement, too.
  client.on('error', () => {})
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}
