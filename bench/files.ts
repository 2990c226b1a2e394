import pg from 'pg'
import type { RunningServices } from '../dev/services/index.ts'
import { type Loop, shown, startApi, timed } from './api.ts'
import type { Child } from './child.ts'
import { goal, print } from './report.ts'

const LISTED = 20_000
const MOVED = 10_000
const WRITES = 3000
const WRITERS = 16
const MAX_DELAY_MS = 50
const GOAL_WRITES_PER_SECOND = 1000
const CONTENT = 'x'.repeat(1000)

type Bench = { url: string; app: Child; pool: pg.Pool }

/**
 * Lists, writes and moves files through the API, each beside plain SQL of the same rows in the same run. Prints the
 * times, the delay of the API's event loop, and the goals.
 */
export async function benchFiles(services: RunningServices, port: number): Promise<boolean> {
  const app = await startApi(services, port, { SESSION_FILES_MAX_COUNT: '50000' })
  const pool = new pg.Pool({ connectionString: services.databaseUrl, max: WRITERS })
  const bench = { url: `http://127.0.0.1:${port}/v1/sessions`, app, pool }
  try {
    return [await benchWrites(bench), await benchList(bench), await benchMove(bench)].every(Boolean)
  } finally {
    await pool.end()
    await app.stop()
  }
}

async function benchWrites(bench: Bench): Promise<boolean> {
  await writeMany(bench, [await newSession(bench)], WRITES / 3)
  await bench.app.ask('delay')
  const one = [await newSession(bench)]
  const many = await Promise.all(Array.from({ length: WRITERS }, () => newSession(bench)))
  const toOne = WRITES / (await timed(() => writeMany(bench, one)))
  const toMany = WRITES / (await timed(() => writeMany(bench, many)))
  const plain = WRITES / (await timed(() => writePlainly(bench, many)))
  print(`writes of 1 KB by ${WRITERS} clients, per second`)
  print(
    `  to one session ${toOne.toFixed(0)}, to ${WRITERS} sessions ${toMany.toFixed(0)}, plain SQL ${plain.toFixed(0)}`,
  )
  print(`  event loop ${await loopOf(bench)}`)
  return goal(
    toMany >= GOAL_WRITES_PER_SECOND,
    `${GOAL_WRITES_PER_SECOND} writes a second: ${toMany.toFixed(0)}, ${(toMany / plain).toFixed(2)} of plain SQL`,
  )
}

async function benchList(bench: Bench): Promise<boolean> {
  const session = await newSession(bench)
  await fill(bench, session, LISTED)
  const path = `${bench.url}/${session}/fs?recursive=true`
  await read(path)
  await bench.app.ask('delay')
  const seconds = await timed(async () => {
    const { data } = await read(path)
    if (data.length !== LISTED) throw new Error(`${data.length} files`)
  })
  const loop = await bench.app.ask<Loop>('delay')
  const sql = 'SELECT * FROM session_files WHERE session_id = $1::uuid ORDER BY path'
  const plain = await timed(() => bench.pool.query(sql, [uuidOf(session)]))
  print(`list of ${LISTED} files: ${ms(seconds)}, plain SQL ${ms(plain)}; event loop ${shown(loop)}`)
  return goal(loop.worst <= MAX_DELAY_MS, `no pause over ${MAX_DELAY_MS} ms: ${loop.worst.toFixed(1)} ms`)
}

async function benchMove(bench: Bench): Promise<boolean> {
  const session = await newSession(bench)
  await fill(bench, session, MOVED)
  const [times, plainTimes] = [[] as number[], [] as number[]]
  for (const [from, to] of [
    ['/a', '/b'],
    ['/b', '/c/d/e'],
    ['/c/d/e', '/a'],
  ]) {
    times.push(await timed(() => send(`${bench.url}/${session}/fs/_/move`, { src_path: from, dst_path: to })))
    plainTimes.push(await timed(() => movePlainly(bench, session, `${to}`, `/other${to}`)))
    await movePlainly(bench, session, `/other${to}`, `${to}`)
  }
  const [time, plain] = [Math.min(...times), Math.min(...plainTimes)]
  print(`move of ${MOVED} files: ${ms(time)}, plain SQL ${ms(plain)}`)
  return goal(time <= 3 * plain, `within 3 times plain SQL: ${(time / plain).toFixed(2)}`)
}

const uuidOf = (session: string): string => session.replace('session_', '')
const ms = (seconds: number): string => `${(seconds * 1000).toFixed(0)} ms`
const loopOf = async ({ app }: Bench): Promise<string> => shown(await app.ask<Loop>('delay'))

const newSession = async ({ url }: Bench): Promise<string> => (await send(url, {})).id as string

async function send(url: string, body: object): Promise<Record<string, unknown>> {
  const headers = { 'Content-Type': 'application/json' }
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  if (answer.status >= 300) throw new Error(`${answer.status} ${await answer.text()}`)
  return (await answer.json()) as Record<string, unknown>
}

const read = async (url: string) => (await (await fetch(url)).json()) as { data: unknown[] }

async function writeMany({ url }: Bench, sessions: string[], count = WRITES): Promise<void> {
  let left = count
  const writer = async (index: number) => {
    const session = sessions[index % sessions.length]
    while (left-- > 0) await send(`${url}/${session}/fs/a/${index}/${left}`, { content: CONTENT })
  }
  await Promise.all(Array.from({ length: WRITERS }, (_, index) => writer(index)))
}

/** Inserts a file and its content, as the service does, in a transaction for each. */
async function writePlainly({ pool }: Bench, sessions: string[]): Promise<void> {
  let left = WRITES
  const text = `WITH file AS (
      INSERT INTO session_files (id, session_id, path, is_directory, size_bytes, content_id, created_at, updated_at)
      VALUES (gen_random_uuid(), $1::uuid, $2, false, 1000, gen_random_uuid(), now(), now())
      RETURNING session_id, content_id)
    INSERT INTO session_file_chunks SELECT session_id, content_id, 0, $3::bytea FROM file`
  const writer = async (index: number) => {
    const session = uuidOf(`${sessions[index % sessions.length]}`)
    while (left-- > 0) {
      const values = [session, `/plain/${index}/${left}`, Buffer.from(CONTENT)]
      await pool.query({ name: 'write_plainly', text, values })
    }
  }
  await Promise.all(Array.from({ length: WRITERS }, (_, index) => writer(index)))
}

/** Fills a session with small files in directories of a hundred, without the service. */
async function fill({ pool }: Bench, session: string, count: number): Promise<void> {
  const directories = Math.ceil(count / 101)
  const insert = (paths: string, isDirectory: boolean) =>
    pool.query(
      `INSERT INTO session_files (id, session_id, path, is_directory, created_at, updated_at)
      SELECT gen_random_uuid(), $1::uuid, path, ${isDirectory}, now(), now() FROM (${paths}) AS paths (path)`,
      [uuidOf(session)],
    )
  await insert("SELECT '/a'", true)
  await insert(`SELECT '/a/' || n FROM generate_series(1, ${directories}) AS n`, true)
  await insert(
    `SELECT '/a/' || n % ${directories} + 1 || '/' || n || '.txt'
    FROM generate_series(1, ${count - directories - 1}) AS n`,
    false,
  )
  await pool.query('ANALYZE session_files')
}

const movePlainly = ({ pool }: Bench, session: string, from: string, to: string) =>
  pool.query(
    `UPDATE session_files SET path = $3 || substr(path, length($2) + 1)
      WHERE session_id = $1::uuid AND (path = $2 OR path > $2 || '/' AND path < $2 || '0')`,
    [uuidOf(session), from, to],
  )
