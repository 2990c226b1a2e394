import type pg from 'pg'
import type { DatabasePlace, DatabaseStore } from '../../domain/session-data/databases/database-store.ts'
import type { PageBatch, State } from '../../domain/session-data/databases/sqlite-runner/sqlite-runner.ts'

const STORE = `SELECT store_session_database($1::uuid, $2::uuid, $3::uuid, $4::text, $5::bigint, $6::uuid, $7::integer,
  $8::text, $9::integer, $10::integer, $11::integer[], $12::bytea, $13::jsonb) AS answer`
const CREATE = 'SELECT create_session_database($1::uuid, $2::uuid, $3::uuid, $4::text, $5::integer) AS answer'
const DELETE = 'SELECT delete_session_database($1::uuid, $2::uuid, $3::text) AS answer'
/** Pages of a batch: 1 MiB. */
const PAGES_AT_ONCE = 256
/** The state, and some pages in it: one value with the bytes of all, because the driver takes longer for many. */
const READ = `SELECT d.version, d.page_count AS "pageCount", batch.numbers, batch.bytes
  FROM sessions s JOIN session_databases d ON d.session_id = s.id
  CROSS JOIN LATERAL (
    SELECT array_agg(number ORDER BY number) AS numbers, string_agg(bytes, '' ORDER BY number) AS bytes
    FROM (
      SELECT number, bytes FROM session_database_pages
      WHERE session_id = d.session_id AND database_id = d.id AND number > $5::integer AND version > $4::integer
        -- So that nothing is sought when nothing has changed.
        AND d.version > $4::integer
      ORDER BY number LIMIT ${PAGES_AT_ONCE}
    ) AS pages
  ) AS batch
  WHERE s.id = $2::uuid AND s.organization_id = $1::uuid AND d.id = $3::uuid`

/** Reads and writes databases by the driver itself, because Prisma makes several texts of all bytes. */
export const createDatabaseStore = (pool: pg.Pool): DatabaseStore => ({
  create: ({ organizationId, sessionId, databaseId }, name, maxCount) =>
    ask(pool, 'create_database', CREATE, [organizationId, sessionId, databaseId, name, maxCount]),
  delete: ({ organizationId, sessionId }, name) =>
    ask(pool, 'delete_database', DELETE, [organizationId, sessionId, name]),
  store: ({ organizationId, sessionId, writer, ...call }) => {
    const attempt = [organizationId, sessionId, writer?.turnId, writer?.step, writer?.fence]
    const database = [call.databaseId, call.version, call.name, call.maxCount]
    const values = [...attempt, ...database, call.pageCount, call.numbers, call.bytes, call.effect]
    return ask(pool, 'store_database', STORE, values)
  },
  read: async (place, since) => {
    const batch = await readBatch(pool, place, since, 0)
    if (batch === undefined) return undefined
    return isFull(batch) ? readInSnapshot(pool, place, since) : { ...batch, pages: pagesOf(batch) }
  },
  readPages: async (place, version, after) => {
    const batch = await readBatch(pool, place, 0, after)
    if (batch?.version !== version) return undefined
    return { numbers: batch.numbers ?? [], bytes: batch.bytes ?? Buffer.alloc(0) }
  },
})

/** Calls a function, whose answer is JSON. */
async function ask(pool: pg.Pool, name: string, text: string, values: unknown[]): Promise<unknown> {
  const { rows } = await pool.query<{ answer: unknown }>({ name, text, values })
  return rows[0]?.answer
}

type Batch = { version: number; pageCount: number; numbers: number[] | null; bytes: Buffer | null }

async function readBatch(
  db: pg.Pool | pg.PoolClient,
  { organizationId, sessionId, databaseId }: DatabasePlace,
  since: number,
  after: number,
): Promise<Batch | undefined> {
  const values = [organizationId, sessionId, databaseId, since, after]
  const { rows } = await db.query<Batch>({ name: 'read_database', text: READ, values })
  return rows[0]
}

const isFull = ({ numbers }: Batch): boolean => numbers?.length === PAGES_AT_ONCE

async function* pagesOf({ numbers, bytes }: Batch): AsyncGenerator<PageBatch> {
  if (numbers !== null && bytes !== null) yield { numbers, bytes }
}

/** Time after which pages are given up if nobody has begun to read them. */
const UNTAKEN_MS = 5000

/** Reads in one snapshot, so that concurrent writers neither mix two states nor keep the reader from finishing. */
async function readInSnapshot(pool: pg.Pool, place: DatabasePlace, since: number): Promise<State | undefined> {
  const client = await pool.connect()
  let isOpen = true
  const end = async () => {
    if (!isOpen) return
    isOpen = false
    // A connection that cannot end its transaction is closed.
    await client.query('COMMIT').then(
      () => client.release(),
      () => client.release(true),
    )
  }
  const untaken = setTimeout(end, UNTAKEN_MS).unref()
  async function* readPages(first: Batch): AsyncGenerator<PageBatch> {
    clearTimeout(untaken)
    if (!isOpen) throw new Error('The pages of a database were not taken in time.')
    try {
      for (let batch: Batch | undefined = first; batch !== undefined; ) {
        yield* pagesOf(batch)
        batch = isFull(batch) ? await readBatch(client, place, since, batch.numbers?.at(-1) ?? 0) : undefined
      }
    } finally {
      await end()
    }
  }
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const first = await readBatch(client, place, since, 0)
    if (first !== undefined) return { ...first, pages: readPages(first) }
  } catch (error) {
    await end()
    throw error
  }
  await end()
  return undefined
}
