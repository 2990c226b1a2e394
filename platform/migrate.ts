import { readdir, readFile } from 'node:fs/promises'
import { PrismaPg } from '@prisma/adapter-pg'
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  type SqlDriverAdapter,
} from '@prisma/driver-adapter-utils'
import type { SchemaEngine } from '@prisma/schema-engine-wasm'
import pg from 'pg'
import { sleep } from '../lib/sleep.ts'

const schemaUrl = new URL('../prisma/schema.prisma', import.meta.url)
const migrationsUrl = new URL('../prisma/migrations/', import.meta.url)
const filters = { externalTables: [], externalEnums: [] }
const lockfile = { path: 'migration_lock.toml', content: 'provider = "postgresql"\n' }

/**
 * Applies the migrations of prisma/migrations that the database lacks, with Prisma's own bookkeeping, in process:
 * what `prisma migrate deploy` does, without its native engine. Several processes may call it at once.
 * Returns the names of the migrations it applied.
 */
export async function applyMigrations(databaseUrl: string): Promise<string[]> {
  const migrationsList = await readMigrations()
  const wanted = migrationsList.migrationDirectories.map(({ path }) => path)
  return withPool(databaseUrl, async (pool) => {
    // The usual start has nothing to do and needs no engine, which takes a second to load.
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

/** The engine's own; while this connection has it, nobody else is migrating. */
const MIGRATION_LOCK = 72707369

/** A process that died in the middle of a migration has done nothing of it: the next one need not ask anybody. */
async function forgetInterrupted(pool: pg.Pool): Promise<void> {
  await pool.query(`SELECT pg_advisory_lock(${MIGRATION_LOCK})`)
  const { rows } = await pool.query("SELECT to_regclass('_prisma_migrations') IS NOT NULL AS there")
  if (rows[0]?.there === true) await pool.query('DELETE FROM _prisma_migrations WHERE finished_at IS NULL')
}

/** What `diffMigration` says when there is no difference. */
export const EMPTY_MIGRATION = '-- This is an empty migration.\n'

/**
 * The SQL that brings the newest migration to prisma/schema.prisma; a comment says so when they agree. It needs an
 * empty database, in which it runs the migrations to see what they make.
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

/** Closed before anything else happens: the engine's advisory lock lives as long as its connection. */
export async function withPool<T>(databaseUrl: string, work: (pool: pg.Pool) => Promise<T>): Promise<T> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1, connectionTimeoutMillis: 5000 })
  pool.on('error', () => {})
  try {
    return await work(pool)
  } finally {
    await pool.end()
  }
}

async function withSchemaEngine<T>(pool: pg.Pool, work: (engine: SchemaEngine) => Promise<T>): Promise<T> {
  const { SchemaEngine } = await import('@prisma/schema-engine-wasm')
  const adapter = bindMigrationAwareSqlAdapterFactory(wholeScripts(pool))
  const schema = await readFile(schemaUrl, 'utf8')
  const engine = await SchemaEngine.new({ datamodels: [[schemaUrl.pathname, schema]] }, () => {}, adapter)
  try {
    return await work(engine)
  } finally {
    engine.free()
  }
}

/**
 * The adapter cuts a script at every semicolon, also in comments and function bodies. Postgres takes it whole, and
 * then as one transaction.
 */
function wholeScripts(pool: pg.Pool): PrismaPg {
  const factory = new PrismaPg(pool)
  const charColumns = disguiseLetters(pool)
  const connect = factory.connect.bind(factory)
  factory.connect = async () => {
    const adapter = await connect()
    adapter.executeScript = (script) => runScript(pool, script)
    tellLetters(adapter, charColumns)
    return adapter
  }
  // The adapter's own would make a database and then, with a connection string, work in the one it came from.
  factory.connectToShadowDb = factory.connect
  return factory
}

/** In the script's transaction, so that a migration is never done and not noted. */
const NOTE_MIGRATION = `DO $$ BEGIN
  IF to_regclass('_prisma_migrations') IS NOT NULL THEN
    UPDATE _prisma_migrations SET finished_at = now() WHERE finished_at IS NULL;
  END IF;
END $$`

const LOCK_TIMEOUT_MS = 5000
const MOST_ATTEMPTS = 20
const RETRY_MS = 1000
const DEADLOCK_DETECTED = '40P01'
const LOCK_NOT_AVAILABLE = '55P03'

/**
 * Runs a script as one transaction. Others may be at work on the tables: whoever waits for them makes everybody else
 * wait behind it, so it gives up soon, lets them through, and tries again.
 */
export async function runScript(pool: pg.Pool, script: string, lockTimeoutMs = LOCK_TIMEOUT_MS): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await pool.query(`SET lock_timeout = ${lockTimeoutMs};\n${script}\n;${NOTE_MIGRATION};\nRESET lock_timeout;`)
      return
    } catch (error) {
      const { code } = error as { code?: string }
      if (attempt === MOST_ATTEMPTS || (code !== DEADLOCK_DETECTED && code !== LOCK_NOT_AVAILABLE)) throw error
      await sleep(RETRY_MS)
    }
  }
}

const LETTER_OID = 18
const TEXT_OID = 25

/**
 * The adapter does not know Postgres's type "char", one letter, that the catalog's own columns have. They are passed
 * off as text; returns what tells the columns of the last query that were.
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

function tellLetters(adapter: SqlDriverAdapter, charColumns: () => string[]): void {
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
