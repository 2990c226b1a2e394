import { readdir, readFile } from 'node:fs/promises'
import type pg from 'pg'
import { withPool } from './migrate.ts'

const functionsUrl = new URL('../../prisma/functions/', import.meta.url)

/** A function or a trigger of the database. `file` is the function's name; the file of that name defines both. */
type DatabaseObject = { file: string; identity: string; definition: string }

/** Differences between the functions that the migrations create and the files of prisma/functions. */
export type FunctionChanges = {
  /**
   * Files whose function the migrations do not create, or create differently; `sql` is the text below the file's head.
   */
  written: { file: string; isNew: boolean; sql: string }[]
  /** Objects that the migrations create but no file has: `ROUTINE name(types)` or `TRIGGER name ON table`. */
  removed: { file: string; identity: string }[]
}

/** Compares a migrated database with the files of prisma/functions. Leaves the database unchanged. */
export const compareFunctions = (migratedDatabaseUrl: string): Promise<FunctionChanges> =>
  withPool(migratedDatabaseUrl, async (pool) => {
    const files = await readFunctionFiles()
    const before = await readObjects(pool)
    const after = await readObjectsOf(pool, before, files)
    const isIn = (objects: DatabaseObject[]) => (one: DatabaseObject) =>
      objects.some(({ identity, definition }) => identity === one.identity && definition === one.definition)
    const changed = new Set(after.filter((one) => !isIn(before)(one)).map(({ file }) => file))
    const known = new Set(before.map(({ file }) => file))
    return {
      written: files
        .filter(({ file }) => changed.has(file))
        .map(({ file, sql }) => ({ file, isNew: !known.has(file), sql })),
      removed: before
        .filter(({ identity }) => !after.some((one) => one.identity === identity))
        .map(({ file, identity }) => ({ file, identity })),
    }
  })

/** Describes each difference and what to do about it. */
export const explainChanges = ({ written, removed }: FunctionChanges): string[] => [
  ...written.map(({ file, isNew }) =>
    isNew
      ? `No migration makes ${file}() of prisma/functions/${file}.sql: write one with npm run migration -- <name>.`
      : `prisma/functions/${file}.sql is not what the migrations make: write one with npm run migration -- <name>.`,
  ),
  ...removed.map(
    ({ file, identity }) =>
      `The migrations make ${identity}, which is not in prisma/functions/${file}.sql: write it there, or drop it with npm run migration -- <name>.`,
  ),
]

/** Returns the part of a migration that brings the functions in line with the files; empty when they agree. */
export const toMigration = ({ written, removed }: FunctionChanges): string =>
  [
    ...removed.map(({ identity }) => `DROP ${identity};\n`),
    ...written.map(({ file, sql }) => `-- Copied from prisma/functions/${file}.sql, which has the manual.\n${sql}`),
  ].join('\n')

/** Reads the files, named by their function, each without the manual at its head. */
async function readFunctionFiles(): Promise<{ file: string; sql: string }[]> {
  const names = (await readdir(functionsUrl)).filter((name) => name.endsWith('.sql')).sort()
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(new URL(name, functionsUrl), 'utf8')
      return { file: name.slice(0, -'.sql'.length), sql: text.replace(/^(--.*\n|\n)+/, '') }
    }),
  )
}

/**
 * Reads what the files create after all existing routines are dropped, so that changed parameters or results do not
 * matter. Rolls everything back.
 */
async function readObjectsOf(
  pool: pg.Pool,
  before: DatabaseObject[],
  files: { sql: string }[],
): Promise<DatabaseObject[]> {
  const routines = before.filter(({ identity }) => identity.startsWith('ROUTINE '))
  try {
    await pool.query('BEGIN')
    // A function may call another that is created later.
    await pool.query('SET LOCAL check_function_bodies = off')
    for (const { identity } of routines) await pool.query(`DROP ${identity} CASCADE`)
    for (const { sql } of files) await pool.query(sql)
    return await readObjects(pool)
  } finally {
    await pool.query('ROLLBACK')
  }
}

async function readObjects(pool: pg.Pool): Promise<DatabaseObject[]> {
  const { rows } = await pool.query<DatabaseObject>(`
    SELECT f.proname AS file, o.identity, o.definition
    FROM pg_proc f CROSS JOIN LATERAL (
      SELECT format('ROUTINE %s', f.oid::regprocedure) AS identity, pg_get_functiondef(f.oid) AS definition
      UNION ALL
      SELECT format('TRIGGER %I ON %s', tgname, tgrelid::regclass), pg_get_triggerdef(oid)
      FROM pg_trigger WHERE tgfoid = f.oid AND NOT tgisinternal
    ) AS o
    WHERE f.pronamespace = 'public'::regnamespace AND f.prokind IN ('f', 'p')
    ORDER BY o.identity DESC`)
  return rows
}
