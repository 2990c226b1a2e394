import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunningServices } from '../dev/services/index.ts'
import { type Child, startChild } from './child.ts'
import { type HostileBody, hostileBodies, hostileRoutes } from './hostile-bodies.ts'
import { runTurns, SLOW_MODEL_ID } from './hostile-turns.ts'
import { goal, print } from './report.ts'
import { percentile } from './statistics.ts'
import { createAsk } from './tenant.ts'

const CONNECTIONS = 4
/** Time for which bodies of all kinds are sent together. */
const STORM_MS = 15_000
const WARM_UP_MS = 3000
const REST_MS = 10_000
const MAX_HEALTH_MS = 100
const MAX_MIB = 100
/** Of the bodies that are sent together, only one in so many is kept in memory. It has no factor in common with their kinds. */
const KEPT = 5

type Sender = { send(body: HostileBody, kind: Kind): Promise<string>; close(): void }
type Kind = 'plain' | 'gzip'

/**
 * Sends the worst bodies to every route of a process with both roles, each kind by itself and then all of them
 * together. Meanwhile another process asks for /health, and another session has turns. Prints each kind and the goals:
 * /health in 100 ms, no step of a turn repeated, and the memory given back.
 */
export async function benchHostile(services: RunningServices, port: number): Promise<boolean> {
  const url = `http://127.0.0.1:${port}`
  const app = await startChild('./hostile-app.ts', {
    env: {
      DATABASE_URL: services.databaseUrl,
      REDIS_URL: services.redisUrl,
      TEMPORAL_ADDRESS: services.temporalAddress,
      PORT: `${port}`,
      AUTH_MODE: 'full',
      AUTH_JWT_SECRET: randomBytes(32).toString('hex'),
      SECRETS_ENCRYPTION_KEY: randomBytes(32).toString('hex'),
    },
  })
  const health = await startChild('./hostile-health.ts', { args: [url] })
  try {
    const { ask, token, routes, turnsId } = await prepare(url)
    const turns = runTurns(ask, turnsId)
    const sender = createSender(url, token)
    await sleep(WARM_UP_MS)
    const calm = await health.ask<number[]>('take')
    const before = residentMib(app.pid)
    await app.ask('stall')
    const { times, stalls, kept } = await stormEach(hostileBodies(routes), sender, { health, app })
    const mixedSent = await stormAll(kept, sender)
    const mixed = await health.ask<number[]>('take')
    const mixedStall = await app.ask<number>('stall')
    sender.close()
    const peak = residentMib(app.pid)
    const { turns: count, restarted } = await turns.stop()
    await sleep(REST_MS)
    const after = residentMib(app.pid)
    const report = (name: string, each: number[]) =>
      `${name}: /health p50 ${ms(percentile(each, 0.5))}, p99 ${ms(percentile(each, 0.99))}, worst ${ms(Math.max(...each))}`
    for (const line of [report('calm', calm), report('one by one', times), report('all together', mixed)]) print(line)
    print(`all together: ${mixedSent} bodies answered in ${STORM_MS / 1000} s; memory after the storm ${peak} MiB`)
    print(`event loop busy at once: one by one ${ms(Math.max(...stalls))}, all together ${ms(mixedStall)} at most`)
    for (const each of restarted.slice(0, 5)) print(each)
    return [
      goal(percentile(times, 0.99) <= MAX_HEALTH_MS, `p99 of /health within ${MAX_HEALTH_MS} ms, one by one`),
      goal(percentile(mixed, 0.99) <= MAX_HEALTH_MS, `p99 of /health within ${MAX_HEALTH_MS} ms, all together`),
      goal(count > 0 && restarted.length === 0, `no step repeated in ${count} turns: ${restarted.length}`),
      goal(after - before <= MAX_MIB, `memory within ${MAX_MIB} MiB of before: ${before} MiB, then ${after} MiB`),
    ].every(Boolean)
  } finally {
    await health.stop()
    await app.stop()
  }
}

const ms = (value: number): string => `${value.toFixed(1)} ms`

async function prepare(url: string) {
  const anonymous = createAsk(url, {})
  const user = { email: 'bench@example.com', password: randomBytes(16).toString('hex'), name: 'Bench' }
  const token = String((await anonymous('POST', '/v1/auth/register', user)).access_token)
  const ask = createAsk(url, { authorization: `Bearer ${token}` })
  const agent = await ask('POST', '/v1/agents', {
    name: 'Slow',
    system_prompt: 'Help.',
    default_model_id: SLOW_MODEL_ID,
  })
  const other = await ask('POST', '/v1/sessions', {})
  const { id: turnsId } = await ask('POST', '/v1/sessions', { agent_id: agent.id })
  const routes = hostileRoutes({ agentId: String(agent.id), sessionId: String(other.id) })
  return { ask, token, turnsId: String(turnsId), routes }
}

function createSender(url: string, token: string): Sender {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  return {
    close: () => agent.destroy(),
    send: ({ route, plain, gzip }, kind) =>
      new Promise((resolve) => {
        const body = kind === 'plain' ? plain : gzip
        const headers = {
          'content-type': route.type,
          'content-length': body.length,
          ...(route.isAnonymous ? {} : { authorization: `Bearer ${token}` }),
          ...(kind === 'gzip' ? { 'content-encoding': 'gzip' } : {}),
        }
        const sent = request(url + route.path, { method: route.method, agent, headers }, (answer) => {
          answer.resume()
          answer.on('close', () => resolve(`${answer.statusCode}`))
        })
        // A connection may be closed before all of a refused body is sent.
        sent.on('error', () => resolve('closed'))
        sent.end(body)
      }),
  }
}

type Storm = { times: number[]; stalls: number[]; kept: HostileBody[] }

/** Sends each body over all connections at once, and prints what that took. */
async function stormEach(
  bodies: Iterable<HostileBody>,
  sender: Sender,
  { health, app }: { health: Child; app: Child },
): Promise<Storm> {
  const storm: Storm = { times: [], stalls: [], kept: [] }
  const columns = 'answered/s   busy  health  status'
  print(`${''.padEnd(53)}${columns.padEnd(43)}${columns}   (plain, then gzip; the longest of each in ms)`)
  let at = 0
  for (const body of bodies) {
    const row: string[] = []
    for (const kind of ['plain', 'gzip'] as const) {
      const startedAt = performance.now()
      const statuses = await Promise.all(Array.from({ length: CONNECTIONS }, () => sender.send(body, kind)))
      const perSecond = (CONNECTIONS * 1000) / (performance.now() - startedAt)
      const times = await health.ask<number[]>('take')
      const busyMs = await app.ask<number>('stall')
      storm.times.push(...times)
      storm.stalls.push(busyMs)
      row.push(
        cell({ perSecond, busyMs, healthMs: Math.max(0, ...times), statuses: [...new Set(statuses)].sort().join(' ') }),
      )
    }
    if (at++ % KEPT === 0) storm.kept.push(body)
    print(`${body.route.name.padEnd(22)}${body.shape.padEnd(31)}${row.join('')}`)
  }
  return storm
}

type Cell = { perSecond: number; busyMs: number; healthMs: number; statuses: string }

const cell = ({ perSecond, busyMs, healthMs, statuses }: Cell): string =>
  `${perSecond.toFixed(0).padStart(10)}${busyMs.toFixed(0).padStart(7)}${healthMs.toFixed(0).padStart(8)}  ${statuses}`.padEnd(
    43,
  )

/** Sends bodies of all kinds in turn, and returns how many were answered. */
async function stormAll(bodies: HostileBody[], sender: Sender): Promise<number> {
  let sent = 0
  await lanes(STORM_MS, async () => {
    const at = sent++
    // A step that has no factor in common with the number of bodies reaches all of them in a mixed order.
    const body = bodies[(at * 31) % bodies.length]
    if (body !== undefined) await sender.send(body, at % 2 === 0 ? 'plain' : 'gzip')
  })
  return sent
}

async function lanes(forMs: number, task: () => Promise<void>): Promise<void> {
  const until = performance.now() + forMs
  const lane = async () => {
    while (performance.now() < until) await task()
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, lane))
}

const residentMib = (pid: number): number =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024)
