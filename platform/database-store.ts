import type pg from 'pg'
import { type DatabasePlace, type DatabaseStore, StateChanged } from '../domain/databases/database-store.ts'
import type { PageBatch } from '../domain/databases/keeper/keeper.ts'

const STORE = `SELECT store_session_database($1::uuid, $2::uuid, $3::uuid, $4::text, $5::bigint, $6::uuid, $7::integer,
  $8::text, $9::integer, $10::integer, $11::integer[], $12::bytea, $13::jsonb) AS answer`
const CREATE = 'SELECT create_session_database($1::uuid, $2::uuid, $3::uuid, $4::text, $5::integer) AS answer'
const DELETE = 'SELECT delete_session_database($1::uuid, $2::uuid, $3::text) AS answer'
const READ_STATE = `SELECT d.version, d.page_count AS "pageCount"
  FROM sessions s JOIN session_databases d ON d.session_id = s.id
  WHERE s.id = $2::uuid AND s.organization_id = $1::uuid AND d.id = $3::uuid`
/** Pages of a batch: 1 MiB. */
const PAGES_AT_ONCE = 256
/** One value with the bytes of all, because the driver takes longer for many. */
const READ_PAGES = `SELECT array_agg(number ORDER BY number) AS numbers, string_agg(bytes, '' ORDER BY number) AS bytes
  FROM (
    SELECT number, bytes FROM session_database_pages
    WHERE session_id = $1::uuid AND database_id = $2::uuid AND version > $3::integer AND number > $4::integer
    ORDER BY number LIMIT ${PAGES_AT_ONCE}
  ) AS batch`

/** Reads and writes databases by the driver itself, because Prisma makes several texts of all bytes. */
export const createDatabaseStore = (pool: pg.Pool): DatabaseStore => ({
  create: ({ organizationId, sessionId, databaseId }, name, maxCount) =>
    ask(pool, 'create_database', CREATE, [organizationId, sessionId, databaseId, name, maxCount]),
  delete: ({ organizationId, sessionId }, name) =>
    ask(pool, 'delete_database', DELETE, [organizationId, sessionId, name]),
  store: ({ organizationId, sessionId, writer, ...call }) => {
    const attempt = [organizationId, sessionId, writer.turnId, writer.step, writer.fence]
    const database = [call.databaseId, call.version, call.name, call.maxCount]
    const values = [...attempt, ...database, call.pageCount, call.numbers, call.bytes, call.effect]
    return ask(pool, 'store_database', STORE, values)
  },
  readState: (place) => readState(pool, place),
  readPages: (place, version, since) => readPages(pool, place, version, since),
})

/** Calls a function, whose answer is JSON. */
async function ask(pool: pg.Pool, name: string, text: string, values: unknown[]): Promise<unknown> {
  const { rows } = await pool.query<{ answer: unknown }>({ name, text, values })
  return rows[0]?.answer
}

async function readState(db: pg.Pool | pg.PoolClient, { organizationId, sessionId, databaseId }: DatabasePlace) {
  const values = [organizationId, sessionId, databaseId]
  const { rows } = await db.query<{ version: number; pageCount: number }>({
    name: 'read_database_state',
    text: READ_STATE,
    values,
  })
  return rows[0]
}

/** Reads in one snapshot, so that whoever writes meanwhile neither mixes two states nor keeps the reader from its end. */
async function* readPages(
  pool: pg.Pool,
  place: DatabasePlace,
  version: number,
  since: number,
): AsyncGenerator<PageBatch> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const state = await readState(client, place)
    if (state?.version !== version) throw new StateChanged()
    for (let after: number | undefined = 0; after !== undefined; ) {
      const values: unknown[] = [place.sessionId, place.databaseId, since, after]
      const { rows }: pg.QueryResult<Batch> = await client.query({ name: 'read_pages', text: READ_PAGES, values })
      const { numbers, bytes } = rows[0] ?? {}
      if (numbers && bytes) yield { numbers, bytes }
      after = numbers?.length === PAGES_AT_ONCE ? numbers.at(-1) : undefined
    }
  } finally {
    // A connection that cannot end its transaction is closed.
    await client.query('COMMIT').then(
      () => client.release(),
      () => client.release(true),
    )
  }
}

type Batch = { numbers: number[] | null; bytes: Buffer | null }
