import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import type { Logger } from 'pino'
import { PrismaClient } from '../prisma/generated/client.ts'
import type { Config } from './config.ts'

const CONNECT_TIMEOUT_MS = 5000
const STATEMENT_TIMEOUT_MS = 30_000
/** Every statement has ended by then, with an answer or by its own limit. */
const SILENT_MS = STATEMENT_TIMEOUT_MS + 5000
const MAX_NAMED_STATEMENTS = 200

export type Postgres = { db: PrismaClient; close(): Promise<void> }

/** The pool is made here because Prisma would leave its connections open for some seconds after it is told to close. */
export function connectPostgres(
  config: Pick<Config, 'DATABASE_URL' | 'DATABASE_POOL_SIZE'>,
  log: Logger,
  { silentMs = SILENT_MS } = {},
): Postgres {
  const pool = new pg.Pool({
    connectionString: config.DATABASE_URL,
    max: config.DATABASE_POOL_SIZE,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: STATEMENT_TIMEOUT_MS,
    keepAlive: true,
    // The adapter takes times for UTC, whatever zone they come in. The pool waits for it.
    onConnect: (client) => {
      // Typed without what every client has.
      hangUpWhenSilent(client as pg.PoolClient, silentMs)
      return client.query("SET TIME ZONE 'UTC'")
    },
  })
  // A pooled connection that breaks while idle has nobody else to tell.
  pool.on('error', (error) => log.warn({ err: error.message }, 'postgres connection lost'))
  const db = new PrismaClient({ adapter: new PrismaPg(pool, { statementNameGenerator: nameStatements() }) })
  const close = async () => {
    await db.$disconnect()
    await pool.end()
  }
  return { db, close }
}

/**
 * A connection to a host that died without a word answers no more and breaks no sooner than the operating system gives up,
 * minutes or hours later. The limits above are kept by Postgres, so they end nothing here. One that nobody uses is closed
 * by the pool long before this.
 */
function hangUpWhenSilent({ connection }: pg.PoolClient, silentMs: number): void {
  // Typed as any stream that somebody may have given it.
  const stream = connection.stream as Socket
  stream.setTimeout(silentMs, () => stream.destroy(new Error('Postgres has not answered in time')))
}

/**
 * A statement with a name is parsed and planned once for each connection. The service has a fixed set of statements,
 * so the first ones are the frequent ones; the limit is for lists whose SQL depends on their length.
 */
function nameStatements(): (query: { sql: string }) => string {
  const names = new Map<string, string>()
  return ({ sql }) => {
    const known = names.get(sql)
    if (known !== undefined || names.size >= MAX_NAMED_STATEMENTS) return known ?? ''
    const name = `s${names.size}`
    names.set(sql, name)
    return name
  }
}

/** A key that all processes of a deployment share: the first one makes it, the record keeps it. */
export async function sharedKey(db: PrismaClient, name: string): Promise<Uint8Array> {
  await db.serviceKey.createMany({ data: [{ name, value: randomBytes(32) }], skipDuplicates: true })
  const { value } = await db.serviceKey.findUniqueOrThrow({ where: { name } })
  return value
}
