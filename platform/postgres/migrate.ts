import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import pg from 'pg'
import { sleep } from '../../lib/sleep.ts'
import { ConfigError } from '../config-error.ts'
import { reportLostConnections, unavailability } from '../unavailable.ts'
import { type PostgresSettings, postgresOptions, settleTls } from './connection.ts'

const migrationsUrl = new URL('../../prisma/migrations/', import.meta.url)

type Migration = { name: string; script: string }

/** Reads prisma/migrations, the oldest first. */
export async function readMigrations(): Promise<Migration[]> {
  const entries = await readdir(migrationsUrl, { withFileTypes: true })
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
  return Promise.all(
    names.sort().map(async (name) => ({
      name,
      script: await readFile(new URL(`${name}/migration.sql`, migrationsUrl), 'utf8'),
    })),
  )
}

/** Key of the advisory lock that Prisma takes, too. While this connection holds it, no other process migrates. */
const MIGRATION_LOCK = 72707369

/** Table in which Prisma notes migrations, as Prisma creates it. */
const CREATE_NOTES = `CREATE TABLE IF NOT EXISTS _prisma_migrations (
  id varchar(36) PRIMARY KEY NOT NULL, checksum varchar(64) NOT NULL, finished_at timestamptz,
  migration_name varchar(255) NOT NULL, logs text, rolled_back_at timestamptz,
  started_at timestamptz NOT NULL DEFAULT now(), applied_steps_count integer NOT NULL DEFAULT 0
)`

/** Whether the schema has tables, but none that notes migrations. */
const IS_FOREIGN = `SELECT to_regclass('_prisma_migrations') IS NULL AND EXISTS (
  SELECT FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
) AS "foreign"`

/** What runs SQL: one connection, or a pool. */
export type Queryable = Pick<pg.ClientBase, 'query'>

/** `noWayBack`: apply also what the release before cannot work with. `from`: other migrations than prisma/migrations. */
type Migrating = { noWayBack?: boolean; from?: Migration[] }

/**
 * Applies the migrations of prisma/migrations that the database lacks, and notes them as Prisma does. Several processes
 * may call it at once. Returns the names of the migrations it applied. Throws ConfigError, and applies nothing, when one
 * of them cannot be rolled back.
 */
export async function applyMigrations(
  database: string | PostgresSettings,
  { noWayBack = false, from }: Migrating = {},
): Promise<string[]> {
  const migrations = from ?? (await readMigrations())
  return withConnection(database, async (connection) => {
    const found = await findMissing(connection, migrations)
    if (found.length === 0) return []
    // An empty database has no release to go back to.
    if (!noWayBack && found.length < migrations.length) requireWayBack(found)
    // A role may have a limit, which is for requests.
    await connection.query('SET statement_timeout = 0')
    await takeLock(connection)
    const { rows } = await connection.query(IS_FOREIGN)
    if (rows[0]?.foreign === true) {
      throw new ConfigError(
        "DATABASE_URL: must name an empty database, or the service's own; this one has other tables",
      )
    }
    await connection.query(CREATE_NOTES)
    // A release before noted the beginning, too. An unfinished one starts over.
    await connection.query('DELETE FROM _prisma_migrations WHERE finished_at IS NULL')
    const missing = await findMissing(connection, migrations)
    for (const migration of missing) await applyMigration(connection, migration)
    return missing.map(({ name }) => name)
  })
}

/**
 * Takes the lock by asking for it again and again. A statement that waited for it would hold up the building of
 * an index without a lock on its table, which waits for the end of every earlier statement.
 */
async function takeLock(connection: Queryable): Promise<void> {
  const isTaken = async () =>
    (await connection.query(`SELECT pg_try_advisory_lock(${MIGRATION_LOCK}) AS taken`)).rows[0]?.taken === true
  while (!(await isTaken())) await sleep(LOCK_POLL_MS)
}

/** Line in which a migration says why the release before cannot work with its schema. */
const NO_WAY_BACK = /^-- No way back: (.+)$/m

function requireWayBack(migrations: Migration[]): void {
  const reasons = migrations.flatMap(({ name, script }) => {
    const reason = NO_WAY_BACK.exec(script)?.[1]
    return reason === undefined ? [] : [`${name}: ${reason}`]
  })
  if (reasons.length === 0) return
  throw new ConfigError(
    `The release before cannot work with the database after these migrations, so back it up first, then run npm run migrate -- --no-way-back\n${reasons.join('\n')}`,
  )
}

/** Returns the migrations that the database lacks. */
export async function findMissing(connection: Queryable, migrations: Migration[]): Promise<Migration[]> {
  const { rows: tables } = await connection.query("SELECT to_regclass('_prisma_migrations') IS NOT NULL AS there")
  if (tables[0]?.there !== true) return migrations
  const { rows } = await connection.query(
    'SELECT migration_name AS name FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL',
  )
  const applied = new Set(rows.map((row) => String(row.name)))
  return migrations.filter(({ name }) => !applied.has(name))
}

/**
 * First line of a migration whose statements, which end with a blank line, are no transaction: none
 * that spares a large table a lock may be in one. It may be interrupted anywhere, and then starts over.
 */
const EACH_BY_ITSELF = /^-- Each statement by itself: /

/** Runs a migration and notes it in the same transaction, so that none is applied without being noted. */
async function applyMigration(connection: Queryable, { name, script }: Migration): Promise<void> {
  const checksum = createHash('sha256').update(script).digest('hex')
  const note = `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at, applied_steps_count)
    VALUES (gen_random_uuid(), '${checksum}', ${pg.escapeLiteral(name)}, now(), 1)`
  try {
    if (!EACH_BY_ITSELF.test(script)) return await runScript(connection, `${script}\n;${note}`)
    for (const statement of [...script.split(/;\n\n/), note]) await connection.query(statement)
  } catch (error) {
    if (unavailability(error) !== undefined) throw error
    throw new Error(`the migration ${name} failed: ${(error as Error).message}`, { cause: error })
  }
}

/** Runs `work` with one connection. When that is lost, so is its advisory lock, and nothing more can run. */
const withConnection = <T>(
  database: string | PostgresSettings,
  work: (connection: Queryable) => Promise<T>,
): Promise<T> =>
  withPool(database, async (pool) => {
    const connection = await pool.connect()
    try {
      return await work(connection)
    } finally {
      connection.release(true)
    }
  })

/** Runs `work` with a pool of one connection, which is closed before the result is there. */
export async function withPool<T>(
  database: string | PostgresSettings,
  work: (pool: pg.Pool) => Promise<T>,
): Promise<T> {
  const settings = typeof database === 'string' ? { DATABASE_URL: database } : database
  const options = postgresOptions(await settleTls(settings))
  const pool = new pg.Pool({ ...options, max: 1, connectionTimeoutMillis: 5000 })
  // The next query rejects. A connection may break as soon as it is there, before anybody has it.
  pool.on('connect', (client) => client.on('error', () => {}))
  pool.on('error', () => {})
  reportLostConnections(pool)
  try {
    return await work(pool)
  } finally {
    await pool.end()
  }
}

const LOCK_POLL_MS = 200
const LOCK_TIMEOUT_MS = 5000
const MAX_ATTEMPTS = 20
const RETRY_MS = 1000
const DEADLOCK_DETECTED = '40P01'
const LOCK_NOT_AVAILABLE = '55P03'

/**
 * Runs a script as one transaction. While it waits for a lock on a table, everybody else waits behind it. So it gives
 * up after `lockTimeoutMs`, lets them through, and tries again.
 */
export async function runScript(connection: Queryable, script: string, lockTimeoutMs = LOCK_TIMEOUT_MS): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await connection.query(`SET lock_timeout = ${lockTimeoutMs};\n${script}\n;RESET lock_timeout;`)
      return
    } catch (error) {
      const { code } = error as { code?: string }
      if (attempt === MAX_ATTEMPTS || (code !== DEADLOCK_DETECTED && code !== LOCK_NOT_AVAILABLE)) throw error
      await sleep(RETRY_MS)
    }
  }
}
