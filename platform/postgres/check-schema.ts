import { ConfigError } from '../config-error.ts'
import type { PostgresSettings } from './connection.ts'
import { findMissing, type Queryable, readMigrations, withPool } from './migrate.ts'

/** The rights that the role of the service lacks, as a list of the first three. */
const LACKED = `WITH place AS (
    SELECT relnamespace AS namespace FROM pg_class WHERE oid = to_regclass('_prisma_migrations')
  ), lacked AS (
    SELECT format('%s on %s', "right", relname) AS item
    FROM place JOIN pg_class ON relnamespace = namespace
    CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS "right"
    WHERE relkind IN ('r', 'p') AND relname <> '_prisma_migrations' AND NOT has_table_privilege(pg_class.oid, "right")
    UNION ALL
    SELECT format('EXECUTE on %s', proname)
    FROM place JOIN pg_proc ON pronamespace = namespace
    WHERE NOT has_function_privilege(pg_proc.oid, 'EXECUTE')
  )
  SELECT count(*)::int AS count, current_user AS role, array_to_string((array_agg(item ORDER BY item))[1:3], ', ') AS items
  FROM lacked`

/**
 * Checks that the schema is the one of this release or later, and that the role may use all of it. Throws ConfigError
 * with what to do.
 */
export const checkSchema = (settings: PostgresSettings): Promise<void> =>
  withPool(settings, async (pool) => {
    await checkMigrations(pool)
    const { rows } = await pool.query<{ count: number; role: string; items: string }>(LACKED)
    const { count = 0, role, items } = rows[0] ?? {}
    if (count === 0) return
    const more = count > 3 ? ` and ${count - 3} more` : ''
    throw new ConfigError(
      `DATABASE_URL: the role ${role} lacks rights: ${items}${more}. docs/operations.md has the GRANTs.`,
    )
  })

async function checkMigrations(connection: Queryable): Promise<void> {
  const migrations = await readMigrations()
  const missing = await findMissing(connection, migrations)
  if (missing.length === 0) return
  // Neither can be told from the other without the right to use the schema.
  const orNoRight = missing.length === migrations.length ? ', unless the role lacks USAGE on their schema' : ''
  const are = missing.length === 1 ? 'a migration is' : `${missing.length} migrations are`
  throw new ConfigError(
    `DATABASE_URL: ${are} not applied (${missing[0]?.name}): run npm run migrate, in a container node deploy/migrate.ts${orNoRight}.`,
  )
}
