import { readFile } from 'node:fs/promises'
import { PrismaPg } from '@prisma/adapter-pg'
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  type SqlDriverAdapter,
} from '@prisma/driver-adapter-utils'
import { SchemaEngine } from '@prisma/schema-engine-wasm'
import type pg from 'pg'
import { printError } from '../dev/terminal.ts'
import { readMigrations, withPool } from '../platform/postgres/migrate.ts'

const schemaUrl = new URL('../prisma/schema.prisma', import.meta.url)
const migrationsUrl = new URL('../prisma/migrations/', import.meta.url)
const filters = { externalTables: [], externalEnums: [] }
const lockfile = { path: 'migration_lock.toml', content: 'provider = "postgresql"\n' }

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
        from: { tag: 'migrations', ...(await listMigrations()) },
        to: { tag: 'schemaDatamodel', files: [schema] },
        script: true,
        exitCode: null,
        filters,
      })
      return stdout ?? ''
    }),
  )

async function withSchemaEngine<T>(pool: pg.Pool, work: (engine: SchemaEngine) => Promise<T>): Promise<T> {
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
 * Creates an adapter that sends scripts whole; Postgres then runs each as one transaction. Prisma's adapter splits them
 * at every semicolon, also in comments and function bodies.
 */
function wholeScripts(pool: pg.Pool): PrismaPg {
  const factory = new PrismaPg(pool)
  const charColumns = disguiseLetters(pool)
  const connect = factory.connect.bind(factory)
  factory.connect = async () => {
    const adapter = await connect()
    adapter.executeScript = async (script) => {
      // The engine's own error has only a number for it.
      await pool.query(script).catch((error: Error) => {
        printError(`A migration failed: ${error.message}`)
        throw error
      })
    }
    restoreCharTypes(adapter, charColumns)
    return adapter
  }
  // The adapter's own method creates a database but, when given a connection string, connects to the original one.
  factory.connectToShadowDb = factory.connect
  return factory
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

/** Lists the migrations as Prisma can run them: whole, so without what no transaction may do. */
async function listMigrations() {
  const migrations = await readMigrations()
  const migrationDirectories = migrations.map(({ name, script }) => ({
    path: name,
    migrationFile: {
      path: 'migration.sql',
      content: { tag: 'ok' as const, value: script.replaceAll(' CONCURRENTLY ', ' ') },
    },
  }))
  return { baseDir: migrationsUrl.pathname, lockfile, shadowDbInitScript: '', migrationDirectories }
}
