import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import type { RunningServices } from '../dev/services/index.ts'
import type { Deps } from '../domain/deps.ts'
import { DEFAULT_ORGANIZATION_UUID, newUuid } from '../domain/kit/ids.ts'
import type { StoreCall } from '../domain/session-data/databases/database-store.ts'
import { openSessionDatabases } from '../domain/session-data/databases/open-session-databases.ts'
import { createSqliteRunner } from '../domain/session-data/databases/sqlite-runner/create-sqlite-runner.ts'
import { readConfig } from '../platform/config.ts'
import { createLog } from '../platform/log.ts'
import { buildPlatform } from '../platform/wiring/build.ts'
import { goal, print } from './report.ts'
import { insertSessions } from './sse-sessions.ts'
import { percentile } from './statistics.ts'

const UPDATES = 100
const WARM_UP = 10
const COLD = 5
/** Rows of about 1 KB, which fill 49 MB. */
const ROWS = 36_000
const PARTS = 4
const MAX_BYTES = 20_000
const MAX_WARM_MS = 30

const MAKE = `CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, n INTEGER DEFAULT 0, data BLOB);
  CREATE INDEX items_name ON items (name)`
const FILL = `WITH RECURSIVE i (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM i WHERE id < ${ROWS / PARTS})
  INSERT INTO items (name, data) SELECT 'item ' || (abs(random()) % 1000000), randomblob(1000) FROM i`
/** Changes a row, adds one to the table and its index, or changes what is in the index. */
const SMALL = [
  'UPDATE items SET n = n + 1 WHERE id = 1 + abs(random()) % 36000',
  "INSERT INTO items (name, data) VALUES ('item ' || abs(random()) % 1000000, randomblob(100))",
  "UPDATE items SET name = 'item ' || (abs(random()) % 1000000) WHERE id = 1 + abs(random()) % 36000",
]
const smallAt = (index: number): string => SMALL[index % SMALL.length] ?? ''

type Stored = Pick<StoreCall, 'databaseId' | 'sessionId' | 'numbers' | 'bytes'>
type Bench = { deps: Deps; pool: pg.Pool; stored: Stored[]; run(deps: Deps, sql: string): Promise<number> }

/**
 * Makes a database of 50 MB, and small changes of it as a tool call makes them, warm and by SQLite runners that have no copy.
 * Prints what they send to Postgres and take, each beside the same SQL on a file and the same pages by plain SQL.
 */
export async function benchDatabases({ databaseUrl, redisUrl, temporalAddress }: RunningServices): Promise<boolean> {
  const environment = { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl, TEMPORAL_ADDRESS: temporalAddress }
  const platform = await buildPlatform(readConfig({ ...process.env, ...environment }), createLog('warn', 'bench'))
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  const folder = await mkdtemp(path.join(tmpdir(), 'agent-sessions-bench-sqlite-'))
  try {
    const bench = await open(platform.deps, pool)
    const file = new DatabaseSync(path.join(folder, 'floor.db'))
    file.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
    await fill(bench, file)
    const isWarmMet = await benchWarm(bench, file)
    await benchCold(bench)
    file.close()
    return isWarmMet
  } finally {
    await pool.end()
    await platform.close()
    await rm(folder, { recursive: true, force: true })
  }
}

async function open(deps: Deps, pool: pg.Pool): Promise<Bench> {
  const [session] = await insertSessions(deps, 1)
  if (session === undefined) throw new Error('no session')
  const stored: Stored[] = []
  const { store } = deps.databaseStore
  const counting = (call: StoreCall) => {
    stored.push(call)
    return store(call)
  }
  const counted = { ...deps, databaseStore: { ...deps.databaseStore, store: counting } }
  const { id: sessionId, turnId } = session
  const signal = new AbortController().signal
  const run = async (of: Deps, sql: string) => {
    const writer = { turnId, step: `act:1:${newUuid()}`, fence: 1 }
    await deps.db.turnStep.create({ data: writer })
    const scope = { organizationId: DEFAULT_ORGANIZATION_UUID, sessionId, writer, signal }
    const startedAt = performance.now()
    await openSessionDatabases(of, scope).execute('large', { sql }, { mayHaveRun: false })
    return performance.now() - startedAt
  }
  return { deps: counted, pool, stored, run }
}

async function fill({ deps, run, stored }: Bench, file: DatabaseSync): Promise<void> {
  const parts = [MAKE, ...Array(PARTS).fill(FILL)]
  for (const sql of parts) await run(deps, sql)
  for (const sql of parts) file.exec(sql)
  const { pageCount } = await deps.db.sessionDatabase.findFirstOrThrow({ where: { name: 'large' } })
  print(`a database of ${((pageCount * 4096) / 1e6).toFixed(1)} MB, made by ${stored.length} calls`)
}

async function benchWarm({ deps, pool, run, stored }: Bench, file: DatabaseSync): Promise<boolean> {
  const [times, onFile, plain] = [[] as number[], [] as number[], [] as number[]]
  for (let index = 0; index < WARM_UP; index++) await run(deps, smallAt(index))
  stored.length = 0
  for (let index = 0; index < UPDATES; index++) {
    times.push(await run(deps, smallAt(index)))
    onFile.push(await msOf(async () => file.exec(smallAt(index))))
    plain.push(await msOf(() => upsertPlainly(pool, stored.at(-1))))
  }
  const bytes = stored.reduce((sum, call) => sum + call.bytes.length, 0) / UPDATES
  print(`${UPDATES} small changes, warm, in ms`)
  print(`  by a tool call       ${shown(times)}`)
  print(`  on a file by SQLite  ${shown(onFile)}`)
  print(`  its pages, plain SQL ${shown(plain)}`)
  return [
    goal(bytes <= MAX_BYTES, `at most ${MAX_BYTES} bytes of pages each: ${bytes.toFixed(0)}`),
    goal(percentile(times, 0.5) <= MAX_WARM_MS, `p50 at most ${MAX_WARM_MS} ms: ${percentile(times, 0.5).toFixed(1)}`),
  ].every(Boolean)
}

async function benchCold({ deps, pool, run, stored }: Bench): Promise<void> {
  const [times, plain] = [[] as number[], [] as number[]]
  for (let index = 0; index < COLD; index++) {
    const sqliteRunner = createSqliteRunner()
    times.push(await run({ ...deps, sqliteRunner }, smallAt(index)))
    await sqliteRunner.close()
    plain.push(await msOf(() => readPlainly(pool, stored.at(-1))))
  }
  print(`a small change by a runner without a copy, in ms`)
  print(`  by a tool call             ${shown(times)}`)
  print(`  reading all, one statement ${shown(plain)}`)
}

/** Upserts the same pages again, in one statement. */
const upsertPlainly = (pool: pg.Pool, stored: Stored | undefined) =>
  pool.query({
    name: 'upsert_plainly',
    text: `INSERT INTO session_database_pages (session_id, database_id, number, version, bytes)
      SELECT $1::uuid, $2::uuid, number, 0, substring($4::bytea FROM (place - 1)::integer * 4096 + 1 FOR 4096)
      FROM unnest($3::integer[]) WITH ORDINALITY AS n (number, place)
      ON CONFLICT (session_id, database_id, number) DO UPDATE SET version = 0, bytes = excluded.bytes`,
    // Beside the database, which stays as it is.
    values: [stored?.sessionId, '00000000-0000-0000-0000-000000000000', stored?.numbers, stored?.bytes],
  })

const readPlainly = (pool: pg.Pool, stored: Stored | undefined) =>
  pool.query(
    'SELECT number, bytes FROM session_database_pages WHERE session_id = $1::uuid AND database_id = $2::uuid ORDER BY number',
    [stored?.sessionId, stored?.databaseId],
  )

async function msOf(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

const shown = (times: number[]): string =>
  `p50 ${percentile(times, 0.5).toFixed(1)}, p90 ${percentile(times, 0.9).toFixed(1)}, worst ${Math.max(...times).toFixed(1)}`
