import type pg from 'pg'
import { DEFAULT_ORGANIZATION_UUID } from '../domain/kit/ids.ts'
import { spawnApp } from './app.ts'
import { goal, print } from './report.ts'
import type { Ground } from './site.ts'
import { median } from './statistics.ts'
import { addAgent, createTenant } from './tenant.ts'
import { addSessions, type Ledger, openLedger, sayToAll, waitUntilAttended, waitUntilBegun } from './waiting-turns.ts'

/** TURNS=<n> makes it shorter. */
const TURNS = Number(process.env.TURNS ?? 1_000_000)
const TURNS_OF_SESSION = 10
const RUNNING = 1000
const REQUESTS = 40
const WARM_UP = 8
const PAGE = 50
const MAX_RATIO = 5
const MAX_COUNT_MS = 1000
const MAX_CANCEL_MS = 5000
const SLOW_MS = 1_400_000
const BEGIN_MS = 120_000

const LISTS: [name: string, path: string][] = [
  ['newest', 'turns?'],
  ['one status, rare', 'turns?status=failed'],
  ['two statuses', 'turns?status=failed&status=cancelled'],
  ['an agent', 'turns?agent_id=AGENT'],
  ['an error code', 'turns?error_code=llm_error'],
  ['in the middle', 'turns?to=MIDDLE'],
  ['agent and status', 'turns?agent_id=AGENT&status=failed&user_id=USER'],
  ['a rare word', 'turns?search=needle'],
  ['a word of each', 'turns?search=message'],
  ['longest running', 'turns?order=longest&limit=1'],
  ['sessions: last status', 'sessions?last_turn_status=failed'],
  ['sessions: a rare word', 'sessions?search=needle'],
  ['sessions: a word of each', 'sessions?search=message'],
  ['sessions: a rare tag', 'sessions?tag=rare'],
]
/** The index is read for all turns that have the word, to learn that they are too many to sort. */
const COMMON = 'a word of each'
const COUNTS: [name: string, path: string][] = [
  ['count: all', 'turns/counts?'],
  ['count: an agent', 'turns/counts?agent_id=AGENT'],
  ['count: a rare word', 'turns/counts?search=needle'],
]

/**
 * Times lists of a million turns beside a page of the same size by a range of the primary key, and cancels 1,000
 * running turns by one request. Prints the numbers and the goals; see docs/benchmarks.md.
 */
export async function benchRuns({ services, ports: [port] }: Ground & { ports: [number, number] }): Promise<boolean> {
  const app = await spawnApp(services, port, { MAX_MODEL_CALLS: '3000' })
  const ledger = await openLedger(services)
  try {
    const url = `http://127.0.0.1:${port}`
    const filled = await timed(() => fill(ledger.pool))
    print(`${TURNS} turns inserted in ${(filled.ms / 1000).toFixed(0)} s`)
    const texts = { ...filled.result, USER: '00000000-0000-0000-0000-000000000001' }
    const met = [...(await timeLists(url, ledger.pool, texts)), await timeCancel(url, ledger)]
    return met.every(Boolean)
  } finally {
    await ledger.close()
    await app.stop()
  }
}

async function timeLists(url: string, pool: pg.Pool, texts: Record<string, string>): Promise<boolean[]> {
  const { rows } = await pool.query('SELECT id FROM turns ORDER BY id DESC OFFSET 1000 LIMIT 1')
  const floor = () =>
    pool.query('SELECT * FROM turns WHERE id < $1 ORDER BY id DESC LIMIT $2', [rows[0].id, PAGE]).then(() => undefined)
  /** The same page over HTTP: a list of one session's turns. */
  const ofSession = () => read(`${url}/v1/sessions/session_${texts.SESSION}/turns?limit=10`)
  print(`p50 in ms                 list   page by key   ratio`)
  const met: boolean[] = []
  for (const [name, path] of [...LISTS, ...COUNTS]) {
    const filled = Object.entries(texts).reduce((text, [key, value]) => text.replace(key, value), path)
    const address = `${url}/v1/${filled}${filled.includes('limit') || path.includes('counts') ? '' : `&limit=${PAGE}`}`
    const [list, key, http] = await alternate([() => read(address), floor, ofSession])
    print(
      `${name.padEnd(26)}${list.toFixed(1).padStart(6)}${key.toFixed(1).padStart(10)}   ${(list / (key + http)).toFixed(2)}`,
    )
    if (path.includes('counts') || name.includes(COMMON))
      met.push(goal(list <= MAX_COUNT_MS, `${name} within ${MAX_COUNT_MS} ms`))
    else
      met.push(
        goal(list / (key + http) <= MAX_RATIO, `${name} within ${MAX_RATIO} times the page by key and a request`),
      )
  }
  return met
}

async function alternate(works: [() => Promise<void>, () => Promise<void>, () => Promise<void>]) {
  const times: [number[], number[], number[]] = [[], [], []]
  for (let round = 0; round < WARM_UP + REQUESTS; round++) {
    for (const [index, work] of works.entries()) {
      const { ms } = await timed(work)
      if (round >= WARM_UP) times[index]?.push(ms)
    }
  }
  return [median(times[0]), median(times[1]), median(times[2])] as const
}

async function read(address: string): Promise<void> {
  const answer = await fetch(address)
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`${address}: ${answer.status} ${text}`)
}

async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; result: T }> {
  const startedAt = performance.now()
  const result = await work()
  return { ms: performance.now() - startedAt, result }
}

async function timeCancel(url: string, ledger: Ledger): Promise<boolean> {
  const tenant = createTenant(url)
  const agentId = await addAgent(tenant, { steps: [{ delay_ms: SLOW_MS, text: 'late' }] })
  const sessions = await addSessions([{ tenant, agentId }], RUNNING)
  await sayToAll(sessions)
  const begun = await waitUntilBegun(ledger, RUNNING, BEGIN_MS)
  await waitUntilAttended(ledger)
  const { ms, result } = await timed(() => tenant.ask('POST', '/v1/turns/cancel', { agent_id: agentId }))
  const { all } = await ledger.unfinished()
  print(`${begun} running turns: ${JSON.stringify(result)} after ${(ms / 1000).toFixed(2)} s, ${all} left`)
  return goal(ms <= MAX_CANCEL_MS && all === 0, `${RUNNING} running turns cancelled within ${MAX_CANCEL_MS / 1000} s`)
}

/** Inserts sessions of ten ended turns each, over two months, with two agents: one in a hundred turns failed. */
async function fill(pool: pg.Pool): Promise<Record<string, string>> {
  const run = (sql: string, values: unknown[] = []) => pool.query(sql, values)
  const { rows: agents } = await run(
    `INSERT INTO agents (id, organization_id, name, system_prompt, updated_at)
    SELECT gen_random_uuid(), $1, 'Agent', 'Help.', now() FROM generate_series(1, 2) RETURNING id`,
    [DEFAULT_ORGANIZATION_UUID],
  )
  const sessions = TURNS / TURNS_OF_SESSION
  await run(
    `INSERT INTO sessions (id, organization_id, agent_id, harness_id, title, tags, status, last_turn_status, created_at, updated_at)
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7000' || '8' || substr(md5(n::text), 1, 15))::uuid,
      $1, ($2::uuid[])[1 + n % 2], gen_random_uuid(), NULL, CASE WHEN n % 10000 = 0 THEN '{rare}'::text[] ELSE '{}' END, 'idle',
      CASE WHEN n % 100 = 0 THEN 'failed' ELSE 'completed' END::turn_status, at, at
    FROM (SELECT n, now() - interval '60 days' * (1 - n / $3::float8) AS at FROM generate_series(1, $3::int) n) AS s`,
    [DEFAULT_ORGANIZATION_UUID, agents.map(({ id }) => id), sessions],
  )
  await run(
    `INSERT INTO turns (id, organization_id, session_id, agent_id, user_id, input_sequence, input_preview, status, error_code,
      created_at, started_at, finished_at, deltas_deleted)
    SELECT (substr(s.id::text, 1, 24) || lpad(to_hex(abs(hashtext(s.id::text || n))), 12, '0'))::uuid, s.organization_id, s.id,
      s.agent_id, '00000000-0000-0000-0000-000000000001', n * 10 - 9, 'A message',
      CASE WHEN abs(hashtext(s.id::text || n)) % 100 = 0 THEN 'failed' ELSE 'completed' END::turn_status,
      CASE WHEN abs(hashtext(s.id::text || n)) % 100 = 0 THEN 'llm_error' END,
      s.created_at + n * interval '1 s', s.created_at, s.created_at + n * interval '1 s', true
    FROM sessions s CROSS JOIN generate_series(1, $1::int) n`,
    [TURNS_OF_SESSION],
  )
  await run(
    `INSERT INTO session_texts (session_id, sequence, words)
    SELECT session_id, input_sequence, search_words(organization_id,
      'This message is about ' || md5(id::text) || CASE WHEN abs(hashtext(id::text)) % 10000 = 0 THEN ' needle' ELSE '' END, true)
    FROM turns`,
  )
  await run('VACUUM ANALYZE turns, sessions, session_texts')
  const { rows } = await run('SELECT id FROM sessions ORDER BY id LIMIT 1')
  const hex = (uuid: string) => uuid.replaceAll('-', '')
  const middle = new Date(Date.now() - 30 * 24 * 3600 * 1000).toISOString()
  return { AGENT: `agent_${hex(agents[0].id)}`, SESSION: hex(rows[0].id), MIDDLE: middle }
}
