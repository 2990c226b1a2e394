import pg from 'pg'
import type { RunningServices } from '../dev/services/index.ts'
import { startApi, timed } from './api.ts'
import { goal, print } from './report.ts'
import { median } from './statistics.ts'

const TURNS = 1000
const EVENTS_OF_TURN = 10
const FILES = 10_000
/** With the files, 1 GiB. */
const FILE_BYTES = 107_374
const CHUNK_BYTES = 49_152
const FORKS = 7
const GOAL_SECONDS = 2

/**
 * Forks a session with 10,000 events and 1 GiB of files through the API, at its end and at a snapshot, beside plain SQL
 * that copies rows of the same events. Prints the times, what a fork stores, and the goal.
 */
export async function benchForks(services: RunningServices, port: number): Promise<boolean> {
  const app = await startApi(services, port)
  const pool = new pg.Pool({ connectionString: services.databaseUrl })
  const send = (path: string, body: object) => post(`http://127.0.0.1:${port}/v1/sessions${path}`, body)
  try {
    const { id } = await send('', { snapshots: true })
    await fill(pool, uuidOf(id))
    const at = await turnAt(pool, uuidOf(id), TURNS / 2)
    const plain = median(await repeat(() => copyPlainly(pool, uuidOf(id))))
    const before = await storedBytes(pool)
    const whole = await repeat(() => send(`/${id}/fork`, {}))
    const bytes = ((await storedBytes(pool)) - before) / FORKS
    const early = await repeat(() => send(`/${id}/fork`, { at }))
    print(`forks of ${TURNS * EVENTS_OF_TURN} events and ${FILES} files of 1 GiB together, in seconds`)
    print(
      `  median ${median(whole).toFixed(2)}, most ${Math.max(...whole).toFixed(2)}, plain SQL of the events ${plain.toFixed(2)}`,
    )
    print(`  at a snapshot of half of the turns ${median(early).toFixed(2)}, most ${Math.max(...early).toFixed(2)}`)
    print(`  stored by one: ${(bytes / 1024 / 1024).toFixed(1)} MiB, with indexes`)
    return goal(Math.max(...whole, ...early) <= GOAL_SECONDS, `each within ${GOAL_SECONDS} s`)
  } finally {
    await pool.end()
    await app.stop()
  }
}

const uuidOf = (id: string): string => id.replace(/^session_(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')

async function post(url: string, body: object): Promise<{ id: string }> {
  const headers = { 'Content-Type': 'application/json' }
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  if (answer.status !== 201) throw new Error(`${answer.status} ${await answer.text()}`)
  return (await answer.json()) as { id: string }
}

async function repeat(work: () => Promise<unknown>): Promise<number[]> {
  const seconds: number[] = []
  for (let n = 0; n < FORKS; n++) seconds.push(await timed(work))
  return seconds
}

/** Inserts finished turns, files, and for a tenth of the files a snapshot from before the last turn. */
async function fill(pool: pg.Pool, session: string): Promise<void> {
  await pool.query(
    `INSERT INTO turns (id, organization_id, session_id, input_sequence, status, finished_at, deltas_deleted)
    SELECT gen_random_uuid(), organization_id, id, n * ${EVENTS_OF_TURN} + 1, 'completed', now(), true
    FROM sessions CROSS JOIN generate_series(0, ${TURNS - 1}) AS n WHERE id = $1`,
    [session],
  )
  await pool.query(
    `INSERT INTO events (session_id, sequence, type, ts, turn_id, step, data)
    SELECT $1, input_sequence + n, types[n + 1], now(), id, '', jsonb_build_object('turn_id', 'turn', 'message', jsonb_build_object(
      'id', 'message', 'content', jsonb_build_array(jsonb_build_object('type', 'text', 'text', repeat('words of ' || n || ' ', 50)))
    ))
    FROM turns CROSS JOIN generate_series(0, ${EVENTS_OF_TURN - 1}) AS n CROSS JOIN (SELECT ARRAY[
      'input.message', 'turn.started', 'reason.started', 'llm.generation', 'output.message.completed', 'reason.completed',
      'act.started', 'act.completed', 'turn.completed', 'session.idled'
    ] AS types) AS named WHERE session_id = $1`,
    [session],
  )
  await pool.query(
    `WITH files AS (
      INSERT INTO session_files (id, session_id, path, is_directory, size_bytes, content_id, created_at, updated_at)
      SELECT gen_random_uuid(), $1, '/' || n, false, ${FILE_BYTES}, gen_random_uuid(), now(), now() FROM generate_series(1, ${FILES}) AS n
      RETURNING content_id
    )
    INSERT INTO session_file_chunks (session_id, content_id, start, bytes)
    SELECT $1, content_id, start, substring($2::bytea FOR least(${CHUNK_BYTES}, ${FILE_BYTES} - start))
    FROM files CROSS JOIN generate_series(0, ${FILE_BYTES - 1}, ${CHUNK_BYTES}) AS start`,
    [session, crypto.getRandomValues(Buffer.alloc(CHUNK_BYTES))],
  )
  await pool.query(
    `INSERT INTO session_snapshots (session_id, kind, name, stamp, before)
    SELECT $1, 'file', path, ${2 * TURNS * EVENTS_OF_TURN - 20}, to_jsonb(f) FROM session_files f
    WHERE session_id = $1 AND path LIKE '%7'`,
    [session],
  )
  const totals = 'INSERT INTO session_file_totals (session_id, count, bytes, space_id) VALUES ($1, $2, $3, $1)'
  await pool.query(totals, [session, FILES, FILES * FILE_BYTES])
  const known = `UPDATE sessions SET status = 'idle', last_sequence = $2 WHERE id = $1`
  await pool.query(known, [session, TURNS * EVENTS_OF_TURN])
  await pool.query('ANALYZE')
}

async function turnAt(pool: pg.Pool, session: string, number: number): Promise<string> {
  const text = 'SELECT id FROM turns WHERE session_id = $1 ORDER BY input_sequence OFFSET $2 LIMIT 1'
  const { rows } = await pool.query<{ id: string }>(text, [session, number])
  return `turn_${rows[0]?.id.replaceAll('-', '')}`
}

const copyPlainly = (pool: pg.Pool, session: string) =>
  pool.query(
    `INSERT INTO events (session_id, sequence, type, ts, turn_id, step, data)
    SELECT copy, sequence, 'plain ' || type, ts, md5(copy || turn_id::text)::uuid, step, data
    FROM events CROSS JOIN (SELECT gen_random_uuid() AS copy) AS made WHERE session_id = $1`,
    [session],
  )

async function storedBytes(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ bytes: string }>('SELECT pg_database_size(current_database()) AS bytes')
  return Number(rows[0]?.bytes)
}
