import { readdir, readFile } from 'node:fs/promises'
import { PrismaPg } from '@prisma/adapter-pg'
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  type SqlDriverAdapter,
} from '@prisma/driver-adapter-utils'
import type { SchemaEngine } from '@prisma/schema-engine-wasm'
import pg from 'pg'
import { sleep } from '../../lib/sleep.ts'
import { reportLostConnections, unavailability } from '../unavailable.ts'

const schemaUrl = new URL('../../prisma/schema.prisma', import.meta.url)
const migrationsUrl = new URL('../../prisma/migrations/', import.meta.url)
const filters = { externalTables: [], externalEnums: [] }
const lockfile = { path: 'migration_lock.toml', content: 'provider = "postgresql"\n' }

/**
 * Applies the migrations of prisma/migrations that the database lacks, with Prisma's own bookkeeping. Does the work of
 * `prisma migrate deploy` in process, without its native engine. Several processes may call it at once. Returns the
 * names of the migrations it applied.
 */
export async function applyMigrations(databaseUrl: string): Promise<string[]> {
  const migrationsList = await readMigrations()
  const wanted = migrationsList.migrationDirectories.map(({ path }) => path)
  return withPool(databaseUrl, async (pool) => {
    // Usually there is nothing to do, and then the engine, which takes a second to load, is not needed.
    if (isSubset(wanted, await appliedMigrations(pool))) return []
    await forgetInterrupted(pool)
    return withSchemaEngine(pool, async (engine) => {
      const { appliedMigrationNames } = await engine.applyMigrations({ migrationsList, filters })
      return appliedMigrationNames
    })
  })
}

const isSubset = (names: string[], all: string[]): boolean => names.every((name) => all.includes(name))

async function appliedMigrations(pool: pg.Pool): Promise<string[]> {
  const { rows: tables } = await pool.query("SELECT to_regclass('_prisma_migrations') IS NOT NULL AS there")
  if (tables[0]?.there !== true) return []
  const { rows } = await pool.query(
    'SELECT migration_name AS name FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL',
  )
  return rows.map((row) => String(row.name))
}

/** Key of the engine's own advisory lock. While this connection holds it, no other process migrates. */
const MIGRATION_LOCK = 72707369

/**
 * Removes the records of unfinished migrations. A migration is one transaction, so one whose process died has changed
 * nothing and can run again without intervention.
 */
async function forgetInterrupted(pool: pg.Pool): Promise<void> {
  await pool.query(`SELECT pg_advisory_lock(${MIGRATION_LOCK})`)
  const { rows } = await pool.query("SELECT to_regclass('_prisma_migrations') IS NOT NULL AS there")
  if (rows[0]?.there === true) await pool.query('DELETE FROM _prisma_migrations WHERE finished_at IS NULL')
}

/** Result of `diffMigration` when there is no difference. */
export const EMPTY_MIGRATION = '-- This is an empty migration.\n'

/**
 * Returns the SQL that brings the newest migration to prisma/schema.prisma, or EMPTY_MIGRATION when they agree. Needs
 * an empty database, in which it runs the migrations to see their result.
 */
export const diffMigration = (emptyDatabaseUrl: string): Promise<string> =>
  withPool(emptyDatabaseUrl, (pool) =>
    withSchemaEngine(pool, async (engine) => {
      const schema = { path: schemaUrl.pathname, content: await readFile(schemaUrl, 'utf8') }
      const { stdout } = await engine.diff({
        from: { tag: 'migrations', ...(await readMigrations()) },
        to: { tag: 'schemaDatamodel', files: [schema] },
        script: true,
        exitCode: null,
        filters,
      })
      return stdout ?? ''
    }),
  )

/**
 * Runs `work` with a pool of one connection, and closes it before anything else happens: the engine's advisory lock
 * lives as long as its connection.
 */
export async function withPool<T>(databaseUrl: string, work: (pool: pg.Pool) => Promise<T>): Promise<T> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1, connectionTimeoutMillis: 5000 })
  pool.on('error', () => {})
  reportLostConnections(pool)
  try {
    return await work(pool)
  } finally {
    await pool.end()
  }
}

async function withSchemaEngine<T>(pool: pg.Pool, work: (engine: SchemaEngine) => Promise<T>): Promise<T> {
  const { SchemaEngine } = await import('@prisma/schema-engine-wasm')
  const reason: Reason = {}
  noteOutages(pool, reason)
  const adapter = bindMigrationAwareSqlAdapterFactory(wholeScripts(pool, reason))
  const schema = await readFile(schemaUrl, 'utf8')
  let engine: SchemaEngine | undefined
  try {
    engine = await SchemaEngine.new({ datamodels: [[schemaUrl.pathname, schema]] }, () => {}, adapter)
    return await work(engine)
  } catch (error) {
    if (unavailability(reason.error) !== undefined) throw reason.error
    if (reason.error === undefined) throw error
    throw new Error(`a migration failed: ${(reason.error as Error).message}`, { cause: error })
  } finally {
    engine?.free()
  }
}

/** Latest error of the connection or of a script. The engine's own error has only a number for it. */
type Reason = { error?: unknown }

function noteOutages(pool: pg.Pool, reason: Reason): void {
  const query: (...args: unknown[]) => Promise<pg.QueryResult> = pool.query.bind(pool)
  const noting = async (...args: unknown[]) => {
    try {
      return await query(...args)
    } catch (error) {
      if (unavailability(error) !== undefined) reason.error = error
      throw error
    }
  }
  Object.assign(pool, { query: noting })
}

/**
 * Creates an adapter that sends scripts whole; Postgres then runs each as one transaction. Prisma's adapter splits them
 * at every semicolon, also in comments and function bodies.
 */
function wholeScripts(pool: pg.Pool, reason: Reason): PrismaPg {
  const factory = new PrismaPg(pool)
  const charColumns = disguiseLetters(pool)
  const connect = factory.connect.bind(factory)
  factory.connect = async () => {
    const adapter = await connect()
    adapter.executeScript = (script) =>
      runScript(pool, script).catch((error: unknown) => {
        reason.error = error
        throw error
      })
    restoreCharTypes(adapter, charColumns)
    return adapter
  }
  // The adapter's own method creates a database but, when given a connection string, connects to the original one.
  factory.connectToShadowDb = factory.connect
  return factory
}

/** Marks the migration as finished in the script's own transaction, so that none is applied without being recorded. */
const NOTE_MIGRATION = `DO $$ BEGIN
  IF to_regclass('_prisma_migrations') IS NOT NULL THEN
    UPDATE _prisma_migrations SET finished_at = now() WHERE finished_at IS NULL;
  END IF;
END $$`

const LOCK_TIMEOUT_MS = 5000
const MAX_ATTEMPTS = 20
const RETRY_MS = 1000
const DEADLOCK_DETECTED = '40P01'
const LOCK_NOT_AVAILABLE = '55P03'

/**
 * Runs a script as one transaction. While it waits for a lock on a table, everybody else waits behind it. So it gives
 * up after `lockTimeoutMs`, lets them through, and tries again.
 */
export async function runScript(pool: pg.Pool, script: string, lockTimeoutMs = LOCK_TIMEOUT_MS): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await pool.query(`SET lock_timeout = ${lockTimeoutMs};\n${script}\n;${NOTE_MIGRATION};\nRESET lock_timeout;`)
      return
    } catch (error) {
      const { code } = error as { code?: string }
      if (attempt === MAX_ATTEMPTS || (code !== DEADLOCK_DETECTED && code !== LOCK_NOT_AVAILABLE)) throw error
      await sleep(RETRY_MS)
    }
  }
}

const LETTER_OID = 18
const TEXT_OID = 25

/**
 * Passes columns of Postgres's one-letter type "char", which the catalog uses, off as text, because the adapter does
 * not know the type. Returns a function that names those columns of the last query.
 */
function disguiseLetters(pool: pg.Pool): () => string[] {
  let charColumns: string[] = []
  const query: (config: unknown, values?: unknown) => Promise<pg.QueryResult> = pool.query.bind(pool)
  const disguised = async (config: unknown, values?: unknown) => {
    const result = await query(config, values)
    const fields = result.fields?.filter((field) => field.dataTypeID === LETTER_OID) ?? []
    for (const field of fields) field.dataTypeID = TEXT_OID
    charColumns = fields.map((field) => field.name)
    return result
  }
  Object.assign(pool, { query: disguised })
  return () => charColumns
}

function restoreCharTypes(adapter: SqlDriverAdapter, charColumns: () => string[]): void {
  const queryRaw = adapter.queryRaw.bind(adapter)
  adapter.queryRaw = async (parameters) => {
    const result = await queryRaw(parameters)
    const isLetter = (index: number) => charColumns().includes(result.columnNames[index] ?? '')
    const columnTypes = result.columnTypes.map((type, index) => (isLetter(index) ? ColumnTypeEnum.Character : type))
    return { ...result, columnTypes }
  }
}

async function readMigrations() {
  const entries = await readdir(migrationsUrl, { withFileTypes: true })
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
  const migrationDirectories = await Promise.all(
    names.sort().map(async (name) => ({
      path: name,
      migrationFile: {
        path: 'migration.sql',
        content: { tag: 'ok' as const, value: await readFile(new URL(`${name}/migration.sql`, migrationsUrl), 'utf8') },
      },
    })),
  )
  return { baseDir: migrationsUrl.pathname, lockfile, shadowDbInitScript: '', migrationDirectories }
}
