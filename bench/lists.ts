import pg from 'pg'
import type { RunningServices } from '../dev/services/index.ts'
import { DEFAULT_ORGANIZATION_UUID } from '../domain/kit/ids.ts'
import { type RunningApp, spawnApp } from './app.ts'
import { goal, print } from './report.ts'
import { percentile } from './statistics.ts'

const SMALL = 1000
const LARGE = 100_000
const PAGE = 20
const REQUESTS = 100
const WARM_UP = 20
const MAX_RATIO = 3

type Installation = { url: string; sessions: number; agentId: string; app: RunningApp }
type Listing = { name: string; query: (of: Installation) => string }

const LISTINGS: Listing[] = [
  { name: 'first page', query: () => `limit=${PAGE}` },
  { name: 'page in the middle', query: ({ sessions }) => `limit=${PAGE}&offset=${sessions / 2}` },
  { name: 'last page', query: ({ sessions }) => `limit=${PAGE}&offset=${sessions - PAGE}` },
  { name: "first page of an agent's", query: ({ agentId }) => `limit=${PAGE}&agent_id=${agentId}` },
  {
    name: "last page of an agent's",
    query: ({ agentId, sessions }) => `limit=${PAGE}&agent_id=${agentId}&offset=${sessions / 2 - PAGE}`,
  },
]

/**
 * Times pages of the list of sessions in two installations on one Postgres, one with a hundred times the sessions of
 * the other. Alternates between them, request by request, so that both see the same machine. Prints both and the goals.
 */
export async function benchLists(services: RunningServices, ports: [number, number]): Promise<boolean> {
  const installations: Installation[] = []
  try {
    for (const [index, sessions] of [SMALL, LARGE].entries()) {
      const databaseUrl = await createDatabase(services.databaseUrl, `lists_${sessions}`)
      const port = ports[index] ?? 0
      const app = await spawnApp({ ...services, databaseUrl }, port)
      const agentId = await fill(databaseUrl, sessions)
      installations.push({ url: `http://127.0.0.1:${port}/v1/sessions?`, sessions, agentId, app })
    }
    const [small, large] = installations
    if (small === undefined || large === undefined) throw new Error('no installations')
    print(`p50 in ms${' '.repeat(21)}${SMALL} sessions   ${LARGE} sessions`)
    const met: boolean[] = []
    for (const place of LISTINGS) met.push(report(place.name, await timeListing(place, small, large)))
    return met.every(Boolean)
  } finally {
    for (const { app } of installations) await app.stop()
  }
}

function report(name: string, [small, large]: [number, number]): boolean {
  print(`${name.padEnd(30)}${small.toFixed(2).padStart(13)}${large.toFixed(2).padStart(18)}`)
  const ratio = large / small
  return goal(ratio <= MAX_RATIO, `${name} within ${MAX_RATIO} times: ${ratio.toFixed(2)}`)
}

async function timeListing(place: Listing, small: Installation, large: Installation): Promise<[number, number]> {
  const times: [number[], number[]] = [[], []]
  for (let round = 0; round < WARM_UP + REQUESTS; round++) {
    const pair = [await timeRequest(place, small), await timeRequest(place, large)]
    if (round >= WARM_UP) for (const [index, ms] of pair.entries()) times[index]?.push(ms)
  }
  return [percentile(times[0], 0.5), percentile(times[1], 0.5)]
}

async function timeRequest({ query }: Listing, installation: Installation): Promise<number> {
  const startedAt = performance.now()
  const answer = await fetch(installation.url + query(installation))
  const body = (await answer.json()) as { data: unknown[] }
  const ms = performance.now() - startedAt
  if (body.data.length !== PAGE) throw new Error(`a page has ${body.data.length} sessions`)
  return ms
}

async function createDatabase(url: string, name: string): Promise<string> {
  await execute(url, (client) => client.query(`CREATE DATABASE ${name}`))
  const own = new URL(url)
  own.pathname = `/${name}`
  return own.toString()
}

/**
 * Inserts sessions without the service: half of them spread over a month, half over the last hour, and every second one
 * with one agent. Returns the agent's id.
 */
const fill = (url: string, sessions: number): Promise<string> =>
  execute(url, async (client) => {
    const { rows } = await client.query(
      `INSERT INTO agents (id, organization_id, name, system_prompt, updated_at)
      VALUES (gen_random_uuid(), $1, 'Agent', 'Help.', now()) RETURNING replace(id::text, '-', '') AS id`,
      [DEFAULT_ORGANIZATION_UUID],
    )
    const agentId: string = rows[0].id
    await client.query(
      `INSERT INTO sessions (id, organization_id, agent_id, harness_id, title, preview, output_preview, created_at, updated_at)
      SELECT gen_random_uuid(), $1, CASE WHEN n % 2 = 0 THEN $2::uuid END, gen_random_uuid(), 'Session ' || n,
        repeat('What was said. ', 13), repeat('What was answered. ', 10),
        now() - random() * CASE WHEN n % 4 < 2 THEN interval '1 month' ELSE interval '1 hour' END, now()
      FROM generate_series(1, $3::int) AS n`,
      [DEFAULT_ORGANIZATION_UUID, agentId, sessions],
    )
    // Autovacuum would do so within a minute.
    await client.query('ANALYZE')
    return `agent_${agentId}`
  })

async function execute<T>(connectionString: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
