import { randomBytes } from 'node:crypto'
import type { RunningServices } from '../dev/services/index.ts'
import { type RunningApp, spawnApp } from './app.ts'
import { goal, print } from './report.ts'
import { percentile } from './statistics.ts'

const REQUESTS = 1000
const WARM_UP = 200
const MAX_RATIO = 2

type Caller = { name: string; url: string; headers: Record<string, string> }

/**
 * Times reading one session in mode none, and with an access token and an API key in mode full. Alternates between
 * them, request by request, so that all see the same machine. Prints each and the goal: at most twice the time of mode
 * none.
 */
export async function benchAuth(services: RunningServices, [open, full]: [number, number]): Promise<boolean> {
  const apps: RunningApp[] = []
  try {
    apps.push(await spawnApp(services, open))
    const secret = randomBytes(32).toString('hex')
    const environment = { AUTH_MODE: 'full', AUTH_JWT_SECRET: secret, SECRETS_ENCRYPTION_KEY: secret }
    apps.push(await spawnApp(services, full, environment))
    const callers = await createCallers(`http://127.0.0.1:${open}`, `http://127.0.0.1:${full}`)
    const times = await timeInTurn(callers)
    const [floor = Number.NaN, ...others] = times.map((each) => percentile(each, 0.5))
    print('p50 in ms')
    print(`${'mode none'.padEnd(20)}${floor.toFixed(2)}`)
    const met = others.map((ms, index) => report(callers[index + 1]?.name ?? '', ms, floor))
    return met.every(Boolean)
  } finally {
    for (const app of apps) await app.stop()
  }
}

function report(name: string, ms: number, floor: number): boolean {
  print(`${name.padEnd(20)}${ms.toFixed(2)}`)
  return goal(ms / floor <= MAX_RATIO, `${name} within ${MAX_RATIO} times: ${(ms / floor).toFixed(2)}`)
}

async function createCallers(open: string, full: string): Promise<Caller[]> {
  const user = { email: 'bench@example.com', password: randomBytes(16).toString('hex'), name: 'Bench' }
  const { access_token } = await post(`${full}/v1/auth/register`, user)
  const token = { authorization: `Bearer ${access_token}` }
  const { key } = await post(`${full}/v1/auth/api-keys`, { name: 'Bench' }, token)
  const { id } = await post(`${full}/v1/sessions`, {}, token)
  const path = `/v1/sessions/${id}`
  return [
    { name: 'mode none', url: open + path, headers: {} },
    { name: 'access token', url: full + path, headers: token },
    { name: 'API key', url: full + path, headers: { authorization: `Bearer ${key}` } },
  ]
}

async function post(url: string, body: object, headers: Record<string, string> = {}): Promise<Record<string, string>> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  if (answer.status !== 201) throw new Error(`${url}: ${answer.status} ${await answer.text()}`)
  return (await answer.json()) as Record<string, string>
}

async function timeInTurn(callers: Caller[]): Promise<number[][]> {
  const times: number[][] = callers.map(() => [])
  for (let round = 0; round < WARM_UP + REQUESTS; round++) {
    for (const [index, { url, headers }] of callers.entries()) {
      const startedAt = performance.now()
      const answer = await fetch(url, { headers })
      await answer.arrayBuffer()
      if (answer.status !== 200) throw new Error(`${url}: ${answer.status}`)
      if (round >= WARM_UP) times[index]?.push(performance.now() - startedAt)
    }
  }
  return times
}
