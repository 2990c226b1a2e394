import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { RunningServices } from '../dev/services/index.ts'
import { freePorts } from '../dev/services/ports.ts'
import { spawnApp } from './app.ts'
import { startChild } from './child.ts'
import { goal, print } from './report.ts'
import { providerEnvironment } from './site.ts'
import { percentile } from './statistics.ts'

const KILLS = 8
const TURNS = 6
const PER_SECOND = 20
/** Time for which the turns stream before the process is killed. */
const STREAM_MS = 4000
const DEADLINE_MS = 30_000
const LOOK_MS = 10
const GOALS = { p50: 2000, p95: 4000 }

/**
 * Kills the only process of the service with SIGKILL while turns stream, and starts it again at once. Prints the time
 * from the kill to the next recorded event of each turn, and until the process is ready.
 */
export async function benchRecovery(services: RunningServices, port: number): Promise<boolean> {
  const [providerPort = 0] = await freePorts(1)
  const provider = await startChild('./provider.ts', { args: [`${providerPort}`] })
  const pool = new pg.Pool({ connectionString: services.databaseUrl, max: 1 })
  const start = () => spawnApp(services, port, providerEnvironment(providerPort))
  let app = await start()
  const nextMs: number[] = []
  try {
    await provider.ask({ tokens: 100_000, pauseMs: 1000 / PER_SECOND })
    for (let kill = 1; kill <= KILLS; kill++) {
      const sessions = await Promise.all(Array.from({ length: TURNS }, () => beginTurn(`http://127.0.0.1:${port}`)))
      await sleep(STREAM_MS)
      process.kill(app.pid, 'SIGKILL')
      const killedAt = Date.now()
      const starting = start()
      const times = await Promise.all(sessions.map((id) => nextEvent(pool, id, killedAt)))
      app = await starting
      nextMs.push(...times)
      print(`kill ${kill}: next events after ${times.map((ms) => ms.toFixed(0)).join(', ')} ms`)
      await Promise.all(
        sessions.map((id) => fetch(`http://127.0.0.1:${port}/v1/sessions/${id}/cancel`, { method: 'POST' })),
      )
    }
  } finally {
    await app.stop()
    await pool.end()
    await provider.stop()
  }
  const p50 = percentile(nextMs, 0.5)
  const p95 = percentile(nextMs, 0.95)
  return [
    goal(p50 <= GOALS.p50, `p50 from SIGKILL to the next event of a turn: at most ${GOALS.p50} ms: ${p50.toFixed(0)}`),
    goal(p95 <= GOALS.p95, `p95 of it: at most ${GOALS.p95} ms: ${p95.toFixed(0)}`),
  ].every(Boolean)
}

/** Starts a turn in a new session. Returns the session's id. */
async function beginTurn(baseUrl: string): Promise<string> {
  const post = async (path: string, body: object): Promise<{ id: string }> => {
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${baseUrl}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as { id: string }
  }
  const { id } = await post('/v1/sessions', {})
  await post(`/v1/sessions/${id}/messages`, { message: { content: [{ type: 'text', text: 'Hello' }] } })
  return id
}

/** Returns the ms from a time to the session's first recorded event after it. Database and bench share their clock. */
async function nextEvent(pool: pg.Pool, sessionId: string, afterMs: number): Promise<number> {
  const uuid = sessionId.slice('session_'.length)
  // An append may have been under way when the process was killed.
  const graceMs = 100
  const sql = `SELECT extract(epoch FROM min(ts)) * 1000 AS at FROM events
    WHERE session_id = $1 AND ts > to_timestamp($2::float8 / 1000)`
  for (const until = Date.now() + DEADLINE_MS; Date.now() < until; await sleep(LOOK_MS)) {
    const { rows } = await pool.query(sql, [uuid, afterMs + graceMs])
    if (rows[0]?.at !== null) return Number(rows[0].at) - afterMs
  }
  throw new Error(`${sessionId} had no event within ${DEADLINE_MS} ms`)
}
