import type { PrismaClient } from '../../prisma/generated/client.ts'

/** Table of the record, and the requested columns that it has. */
export type Table = { name: string; columns: string[] }

/** Returns all tables in the database that have at least one of the columns. */
export const tablesWith = (db: PrismaClient, columns: readonly string[]): Promise<Table[]> => db.$queryRaw`
  SELECT table_name::text AS name, array_agg(column_name::text) AS columns
  FROM information_schema.columns NATURAL JOIN information_schema.tables
  WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' AND column_name = ANY (${columns}::text[])
  GROUP BY table_name ORDER BY table_name`

/** SQL conditions for the rows of an organization, by column. $1 is its UUID. */
const OF_ORGANIZATION: Record<string, string> = {
  organization_id: 'organization_id = $1::uuid',
  session_id: 'session_id IN (SELECT id FROM sessions WHERE organization_id = $1::uuid)',
}

/**
 * SQL conditions for the rows of a session, by column. Rows that name a deleted turn count too, because turns are
 * deleted with their session.
 */
const OF_SESSION: Record<string, string> = {
  session_id: 'session_id = $1::uuid',
  turn_id: `(turn_id IN (SELECT id FROM turns WHERE session_id = $1::uuid)
    OR turn_id IS NOT NULL AND NOT EXISTS (SELECT FROM turns WHERE id = turn_id))`,
}

type Counts = Record<string, number>

export const ORGANIZATION_COLUMNS = Object.keys(OF_ORGANIZATION)
export const SESSION_COLUMNS = Object.keys(OF_SESSION)

/** Counts the organization's rows in each table. */
export const countOfOrganization = (db: PrismaClient, tables: Table[], id: string): Promise<Counts> =>
  count(db, tables, OF_ORGANIZATION, id)

/** Counts the session's rows in each table. */
export const countOfSession = (db: PrismaClient, tables: Table[], id: string): Promise<Counts> =>
  count(db, tables, OF_SESSION, id)

async function count(
  db: PrismaClient,
  tables: Table[],
  conditions: Record<string, string>,
  id: string,
): Promise<Counts> {
  const counts: Counts = {}
  for (const { name, columns } of tables) {
    // The conditions are ordered by preference.
    const column = Object.keys(conditions).find((candidate) => columns.includes(candidate))
    const [row] = await db.$queryRawUnsafe<{ count: number }[]>(
      `SELECT count(*)::int AS count FROM "${name}" WHERE ${conditions[column ?? '']}`,
      id,
    )
    counts[name] = row?.count ?? 0
  }
  return counts
}

/** Throws with a sentence for each table without rows. */
export function expectSome(counts: Counts, sentence: (table: string) => string): void {
  const empty = Object.keys(counts).filter((table) => counts[table] === 0)
  if (empty.length > 0) throw new Error(empty.map(sentence).join('\n'))
}

/** Throws with a sentence for each table that still has rows. */
export function expectNone(counts: Counts, sentence: (table: string, count: number) => string): void {
  const left = Object.entries(counts).filter(([, number]) => number > 0)
  if (left.length > 0) throw new Error(left.map(([table, number]) => sentence(table, number)).join('\n'))
}
