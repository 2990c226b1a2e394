import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import type { Logger } from 'pino'
import type { DatabaseStore } from '../../domain/session-data/databases/database-store.ts'
import type { FileStore } from '../../domain/session-data/files/file-store.ts'
import type { ImageChunks } from '../../domain/session-data/images/chunk-store.ts'
import { warnRarely } from '../../lib/warn-rarely.ts'
import { PrismaClient } from '../../prisma/generated/client.ts'
import type { Config } from '../config.ts'
import { reportLostConnections } from '../unavailable.ts'
import { UnnamedClient, UtcClient } from './clients.ts'
import { type PostgresSettings, postgresOptions } from './connection.ts'
import { createDatabaseStore } from './database-store.ts'
import { withDirectQueries } from './direct-queries.ts'
import { createFileStore } from './file-store.ts'
import { createImageChunks } from './image-chunks.ts'
import { closeDeadConnections } from './silence.ts'

const CONNECT_TIMEOUT_MS = 5000
const STATEMENT_TIMEOUT_MS = 30_000
const LIMITS = {
  statement_timeout: STATEMENT_TIMEOUT_MS,
  idle_in_transaction_session_timeout: STATEMENT_TIMEOUT_MS,
}
/** Longest silence on a connection. By then every statement has ended, with an answer or by its own limit. */
const SILENT_MS = STATEMENT_TIMEOUT_MS + 5000
/** Time for which an unused connection stays open: a new one has to plan each statement again. Below `SILENT_MS`. */
const IDLE_MS = 30_000
const MAX_NAMED_STATEMENTS = 200

export type Postgres = {
  db: PrismaClient
  /** Counts of connections, for those who watch the process. */
  pool: Pick<pg.Pool, 'totalCount' | 'idleCount' | 'waitingCount'>
  imageChunks: ImageChunks
  fileStore: FileStore
  databaseStore: DatabaseStore
  close(): Promise<void>
}

/**
 * Connects to Postgres. The pool is created here because Prisma leaves the connections of its own open for some seconds
 * after closing.
 */
export function connectPostgres(
  config: PostgresSettings & Pick<Config, 'DATABASE_POOL_SIZE'>,
  log: Logger,
  { silentMs = SILENT_MS } = {},
): Postgres {
  const hasPooler = config.DATABASE_POOLER === 'transaction'
  const pool = new pg.Pool({
    ...postgresOptions(config),
    // The adapter interprets times as UTC, whatever their zone.
    Client: hasPooler ? UnnamedClient : UtcClient,
    max: config.DATABASE_POOL_SIZE,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_MS,
    // A pooler refuses them: there, the role has them.
    ...(!hasPooler && LIMITS),
    keepAlive: true,
    // The type lacks members that every client has.
    onConnect: (client) => hangUpWhenSilent(client as pg.PoolClient, silentMs),
  })
  // A connection in use that breaks is reported by its statement. Without a listener the error would end the process.
  pool.on('connect', (client) => client.on('error', () => {}))
  // An idle connection in the pool that breaks is reported only here.
  pool.on('error', (error) => warnRarely(log, { err: error.message }, 'postgres connection lost'))
  reportLostConnections(pool)
  // Behind a pooler, a connection has no process of Postgres.
  const watch = hasPooler ? undefined : closeDeadConnections(pool, postgresOptions(config), log)
  const statementNameGenerator = nameStatements()
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool, { statementNameGenerator }) })
  const close = async () => {
    watch?.close()
    await prisma.$disconnect()
    await pool.end()
  }
  return {
    pool,
    db: withDirectQueries(prisma, pool, statementNameGenerator),
    imageChunks: createImageChunks(pool),
    fileStore: createFileStore(pool),
    databaseStore: createDatabaseStore(pool),
    close,
  }
}

/**
 * Closes a connection on which Postgres does not answer. When a host dies silently, the connection breaks only when the
 * operating system gives up, minutes or hours later. Postgres enforces the limits above, so they do not help here. The
 * pool closes idle connections long before this.
 */
function hangUpWhenSilent({ connection }: pg.PoolClient, silentMs: number): void {
  // Typed as any stream, because a caller may supply one.
  const stream = connection.stream as Socket
  stream.setTimeout(silentMs, () => stream.destroy(new Error('Postgres has not answered in time')))
}

/**
 * Names statements, so that each connection parses and plans them only once. The service has a fixed set of statements,
 * so the first ones are the frequent ones. The limit is for lists whose SQL depends on their length.
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

/** Returns a key that all processes of a deployment share. The first one creates it, and the database keeps it. */
export async function sharedKey(db: PrismaClient, name: string): Promise<Uint8Array> {
  await db.serviceKey.createMany({ data: [{ name, value: randomBytes(32) }], skipDuplicates: true })
  const { value } = await db.serviceKey.findUniqueOrThrow({ where: { name } })
  return value
}
