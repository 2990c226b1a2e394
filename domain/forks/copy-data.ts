import { Prisma } from '../../prisma/generated/client.ts'

/** `asOf` is the stamp of a snapshot (see SessionSnapshot in prisma/schema.prisma); undefined: as the data is now. */
type Copy = { from: string; to: string; asOf: bigint | undefined }

/** Rows that refer to the row of the new session. Each is JSON, with all columns. */
type Rest = { totals: string; databases: string }

/**
 * Copies files, databases and values of a session to a new one, which need not exist yet. The contents of files are shared.
 * Returns the rest for `insertData`. Waits at most a second for a lock, then fails with lock_not_available (55P03).
 */
export async function copyData(db: Prisma.TransactionClient, copy: Copy): Promise<Rest> {
  const totals = await copyFiles(db, copy)
  const databases = await copyDatabases(db, copy)
  await copyValues(db, copy)
  return { totals: JSON.stringify(totals), databases: JSON.stringify(databases.map(({ row }) => row)) }
}

/** Inserts the rest of copied data, when the session exists. */
export async function insertData(db: Prisma.TransactionClient, to: string, { totals, databases }: Rest): Promise<void> {
  await db.$executeRaw`
    INSERT INTO session_file_totals (session_id, count, bytes, space_id)
    SELECT ${to}::uuid, count, bytes, space_id FROM jsonb_populate_recordset(NULL::session_file_totals, ${totals}::jsonb)`
  await db.$executeRaw`
    INSERT INTO session_databases (id, session_id, name, version, page_count, created_at, updated_at)
    SELECT id, ${to}::uuid, name, version, page_count, created_at, updated_at
    FROM jsonb_populate_recordset(NULL::session_databases, ${databases}::jsonb)`
}

type Kind = 'file' | 'value' | 'database' | 'page'

/** SQL for what has changed since the snapshot, as it was. */
const changedSql = ({ from, asOf }: Copy, kind: Kind) => Prisma.sql`(
  SELECT DISTINCT ON (name) name, before, bytes FROM session_snapshots
  WHERE session_id = ${from}::uuid AND kind = ${Prisma.raw(`'${kind}'`)}
    AND ${asOf === undefined ? Prisma.sql`false` : Prisma.sql`stamp >= ${asOf}`}
  ORDER BY name, stamp
)`

/** Locks the totals, as everybody does who changes files: a content stays while a file has it, and gets a new file here. */
async function copyFiles(db: Prisma.TransactionClient, copy: Copy): Promise<unknown[]> {
  const { from, to } = copy
  const totals = await db.$executeRaw`
    UPDATE session_file_totals SET space_id = coalesce(space_id, session_id) WHERE session_id = ${from}::uuid`
  if (totals === 0) return []
  const copied = await db.$queryRaw<{ row: unknown }[]>`
    WITH changed AS MATERIALIZED ${changedSql(copy, 'file')}, files AS (
      SELECT f.* FROM session_files f
      WHERE f.session_id = ${from}::uuid AND NOT EXISTS (SELECT FROM changed WHERE name = f.path)
      UNION ALL
      SELECT f.* FROM changed CROSS JOIN LATERAL jsonb_populate_record(NULL::session_files, changed.before) AS f
      WHERE changed.before IS NOT NULL
    ), copied AS (
      INSERT INTO session_files (
        id, session_id, path, is_directory, is_readonly, is_base64, size_bytes, content_id, seen_content_id, created_at, updated_at
      )
      SELECT gen_random_uuid(), ${to}::uuid, path, is_directory, is_readonly, is_base64, size_bytes, content_id, seen_content_id,
        created_at, updated_at
      FROM files
      RETURNING size_bytes
    )
    SELECT jsonb_build_object(
      'count', (SELECT count(*) FROM copied), 'bytes', (SELECT coalesce(sum(size_bytes), 0) FROM copied), 'space_id', space_id
    ) AS row
    FROM session_file_totals WHERE session_id = ${from}::uuid`
  return copied.map(({ row }) => row)
}

type CopiedDatabase = { of: string; id: string; row: unknown }

/** Locks the databases, as everybody does who changes pages. Leaves out databases that are created from then on. */
async function copyDatabases(db: Prisma.TransactionClient, copy: Copy): Promise<CopiedDatabase[]> {
  const { from } = copy
  const locked = await db.$queryRaw<{ id: string }[]>`
    SELECT id::text AS id FROM session_databases WHERE session_id = ${from}::uuid ORDER BY id FOR SHARE`
  const copied = await db.$queryRaw<CopiedDatabase[]>`
    WITH changed AS MATERIALIZED ${changedSql(copy, 'database')}, databases AS (
      SELECT d.* FROM session_databases d
      WHERE d.id = ANY (${locked.map(({ id }) => id)}::uuid[]) AND NOT EXISTS (SELECT FROM changed WHERE name = d.name)
      UNION ALL
      SELECT d.* FROM changed CROSS JOIN LATERAL jsonb_populate_record(NULL::session_databases, changed.before) AS d
      WHERE changed.before IS NOT NULL
    ), copies AS MATERIALIZED (SELECT d.id AS of, gen_random_uuid() AS id, to_jsonb(d) AS row FROM databases d)
    SELECT of::text AS of, id::text AS id, row || jsonb_build_object('id', id) AS row FROM copies`
  if (copied.length > 0) await copyPages(db, copy, copied)
  return copied
}

const copyPages = (db: Prisma.TransactionClient, copy: Copy, databases: CopiedDatabase[]) =>
  db.$executeRaw`
    WITH changed AS MATERIALIZED ${changedSql(copy, 'page')}, pages AS (
      SELECT p.* FROM session_database_pages p
      WHERE p.session_id = ${copy.from}::uuid
        AND NOT EXISTS (SELECT FROM changed WHERE name = p.database_id || '/' || p.number)
      UNION ALL
      SELECT p.session_id, p.database_id, p.number, p.version, changed.bytes FROM changed
      CROSS JOIN LATERAL jsonb_populate_record(NULL::session_database_pages, changed.before) AS p
      WHERE changed.before IS NOT NULL
    )
    INSERT INTO session_database_pages (session_id, database_id, number, version, bytes)
    SELECT ${copy.to}::uuid, copy.id, p.number, p.version, p.bytes
    FROM pages p JOIN unnest(${databases.map(({ of }) => of)}::uuid[], ${databases.map(({ id }) => id)}::uuid[]) AS copy (of, id)
      ON copy.of = p.database_id`

const copyValues = (db: Prisma.TransactionClient, copy: Copy) => db.$executeRaw`
  WITH changed AS MATERIALIZED ${changedSql(copy, 'value')}, stored AS (
    SELECT v.* FROM session_values v
    WHERE v.session_id = ${copy.from}::uuid AND NOT EXISTS (SELECT FROM changed WHERE name = v.key)
    UNION ALL
    SELECT v.* FROM changed CROSS JOIN LATERAL jsonb_populate_record(NULL::session_values, changed.before) AS v
    WHERE changed.before IS NOT NULL
  )
  INSERT INTO session_values (session_id, key, value, created_at, updated_at)
  SELECT ${copy.to}::uuid, key, value, created_at, updated_at FROM stored`
