import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import pg from 'pg'
import type { RunningServices } from '../dev/services/index.ts'
import { fromId } from '../domain/kit/ids.ts'
import { type Loop, startApi, timed } from './api.ts'
import type { Child } from './child.ts'
import { goal, print } from './report.ts'

const FILES = 10_000
const FILE_BYTES = 10_000
const TEXTS = 100
const RUNS = 3
const AT_ONCE = 8
const MAX_SECONDS = 3
const MAX_PAUSE_MS = 50
const RESOLUTION_MS = 5
const PATTERNS = ['needle', '(?i)NEEDLE \\d+$', '(\\w+\\s+){5}needle', '[A-Z]\\w+\\(.*\\)', '(a+)+$']

/**
 * Searches 10,000 files with 100 MB over HTTP, and reads the same rows by plain SQL in the same run. Prints the times,
 * the longest pauses of the API's event loop and of this idle process, which shows the machine's own, and the memory of
 * eight searches at once.
 */
export async function benchGrep(services: RunningServices, port: number): Promise<boolean> {
  const app = await startApi(services, port)
  const database = new pg.Client({ connectionString: services.databaseUrl })
  await database.connect()
  try {
    const session = await createSession(`http://127.0.0.1:${port}`)
    const idleMib = mostMib(app)
    await fill(database, fromId(session))
    const url = `http://127.0.0.1:${port}/v1/sessions/${session}/fs/_/grep`
    const met = [await measureTimes(app, database, session, url)]
    await measureMemory(app, url, idleMib)
    return met.every(Boolean)
  } finally {
    await database.end()
    await app.stop()
  }
}

async function measureTimes(app: Child, database: pg.Client, session: string, url: string): Promise<boolean> {
  await grep(url, 'warm up')
  await app.ask('delay')
  const own = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  own.enable()
  const met: boolean[] = []
  for (const pattern of PATTERNS) {
    const times = { floor: [] as number[], grep: [] as number[] }
    let [pause, ownPause, matches] = [0, 0, 0]
    for (let run = 0; run < RUNS; run++) {
      times.floor.push(await timed(() => readAll(database, fromId(session))))
      await app.ask('delay')
      own.reset()
      times.grep.push(
        await timed(async () => {
          matches = await grep(url, pattern, () => {
            ownPause = Math.max(ownPause, own.max / 1e6 - RESOLUTION_MS)
          })
        }),
      )
      pause = Math.max(pause, (await app.ask<Loop>('delay')).worst)
    }
    const [floor, seconds] = [median(times.floor), median(times.grep)]
    print(
      `${pattern}: ${seconds.toFixed(2)} s (${matches} matches), plain SQL ${floor.toFixed(2)} s; pause ${pause.toFixed(1)} ms, of an idle process ${ownPause.toFixed(1)} ms`,
    )
    met.push(goal(seconds <= MAX_SECONDS, `${FILES} files within ${MAX_SECONDS} s: ${seconds.toFixed(2)}`))
    met.push(goal(pause <= MAX_PAUSE_MS, `no pause over ${MAX_PAUSE_MS} ms: ${pause.toFixed(1)}`))
  }
  own.disable()
  return met.every(Boolean)
}

/** Searches at once. A search that waits for too long is refused. */
async function measureMemory(app: Child, url: string, idleMib: number): Promise<void> {
  const oneMib = mostMib(app)
  const search = () =>
    grep(url, 'needle').then(
      () => 1,
      () => 0,
    )
  let done: number[] = []
  const seconds = await timed(async () => {
    done = await Promise.all(Array.from({ length: AT_ONCE }, search))
  })
  const loop = await app.ask<Loop>('delay')
  const answered = done.reduce((sum, one) => sum + one, 0)
  print(`${AT_ONCE} at once: ${answered} answered in ${seconds.toFixed(1)} s; pause ${loop.worst.toFixed(1)} ms`)
  print(`memory at most: ${idleMib} MiB without searches, ${oneMib} MiB with one, ${mostMib(app)} MiB with ${AT_ONCE}`)
}

const mostMib = ({ pid }: Child): number =>
  Math.round(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024)

async function createSession(api: string): Promise<string> {
  const answer = await fetch(`${api}/v1/sessions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{}',
  })
  // The service's own answer.
  const { id } = (await answer.json()) as { id: string }
  return id
}

const WORDS = 'const let function return import export Error filters map filter await async value index 42 ( ) { } =>'
  .split(' ')
  .concat(['été', '日本'])

/** Returns a text of lines as of a program, the same in each run. */
function programText(seed: number): string {
  let state = seed
  const next = (below: number) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return (state >> 8) % below
  }
  let text = ''
  while (Buffer.byteLength(text) < FILE_BYTES) {
    text += `${Array.from({ length: next(14) }, () => WORDS[next(WORDS.length)]).join(' ')}\n`
  }
  return text.slice(0, FILE_BYTES - 100)
}

/** Inserts the files, each with a line of its own. */
async function fill(database: pg.Client, sessionId: string): Promise<void> {
  const texts = Array.from({ length: TEXTS }, (_, index) => programText(index + 1))
  await database.query(
    `WITH made AS (
      INSERT INTO session_files (id, session_id, path, is_directory, size_bytes, content_id, created_at, updated_at)
      SELECT gen_random_uuid(), $1, '/src/' || n % 100 || '/file-' || n || '.ts', false,
        octet_length(convert_to(t.text || 'needle ' || n, 'UTF8')), gen_random_uuid(), now(), now()
      FROM generate_series(1, $3::int) AS n JOIN unnest($2::text[]) WITH ORDINALITY AS t (text, place)
        ON t.place = n % ${TEXTS} + 1
      RETURNING session_id, content_id, substring(path FROM 'file-([0-9]+)')::int AS n
    )
    INSERT INTO session_file_chunks (session_id, content_id, start, bytes)
    SELECT session_id, content_id, 0, convert_to(t.text || 'needle ' || n, 'UTF8')
    FROM made JOIN unnest($2::text[]) WITH ORDINALITY AS t (text, place) ON t.place = n % ${TEXTS} + 1`,
    [sessionId, texts, FILES],
  )
  await database.query('ANALYZE')
}

/** Reads all contents in statements of about 3 MB, as the service does. */
async function readAll(database: pg.Client, sessionId: string): Promise<void> {
  const atOnce = 300
  for (let after = '/', read = atOnce; read === atOnce; ) {
    const { rows } = await database.query<{ path: string }>(
      `SELECT f.path, c.bytes FROM session_files f JOIN session_file_chunks c USING (session_id, content_id)
      WHERE f.session_id = $1 AND f.path > $2 ORDER BY f.path LIMIT ${atOnce}`,
      [sessionId, after],
    )
    after = rows.at(-1)?.path ?? after
    read = rows.length
  }
}

/** Returns the number of matches. `onAnswer` is called when the answer begins; until then this process is idle. */
async function grep(url: string, pattern: string, onAnswer: () => void = () => {}): Promise<number> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ pattern }),
  })
  onAnswer()
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`)
  // The service's own answer.
  const { data } = (await answer.json()) as { data: { matches: unknown[] }[] }
  return data.reduce((sum, { matches }) => sum + matches.length, 0)
}

const median = (samples: number[]): number => samples.toSorted((a, b) => a - b)[samples.length >> 1] ?? 0
