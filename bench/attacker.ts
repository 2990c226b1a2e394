import { randomBytes } from 'node:crypto'
import type { RunningServices } from '../dev/services/index.ts'
import { spawnApp } from './app.ts'
import { openClients } from './sse-clients.ts'
import type { StubModel } from './stub.ts'
import { addAgent, addAgentOfStub, addSession, ECHO_MODEL_ID, forEach, type Tenant } from './tenant.ts'
import { addSessions, reportFailed, sayToAll } from './waiting-turns.ts'

const STREAMS_PER_SESSION = 12
const SLOW_MS = 1_400_000
const SLEEPS = 20
/** Time limit for an attack's beginning. Requests not sent by then are left out. */
const BEGIN_MS = 120_000

/** An attack that has begun, with the number of turns, executions or streams that the service has accepted. */
export type Attack = { accepted: number; stop(): Promise<unknown> }

/** Starts the service in one process and in mode full, with providers on this machine allowed. */
export const spawnAttacked = (services: RunningServices, port: number) =>
  spawnApp(services, port, {
    AUTH_MODE: 'full',
    AUTH_JWT_SECRET: randomBytes(32).toString('hex'),
    AUTH_JWT_ACCESS_TOKEN_LIFETIME: '7200',
    SECRETS_ENCRYPTION_KEY: randomBytes(32).toString('hex'),
    ALLOW_PRIVATE_NETWORK: 'true',
  })

/** Begins turns whose model says nothing for longer than any bench lasts. */
export const beginSlowTurns = (tenants: Tenant[], count: number): Promise<Attack> =>
  beginTurns(tenants, count, (tenant) => addAgent(tenant, { steps: [{ delay_ms: SLOW_MS, text: 'late' }] }))

/** Begins turns that call `bash` to sleep, one call after the other. */
export function beginCommands(tenants: Tenant[], count: number): Promise<Attack> {
  const step = { tool_calls: [{ name: 'bash', arguments: { command: 'sleep 118', timeout_secs: 120 } }] }
  const agent = { steps: Array(SLEEPS).fill(step), capabilities: ['virtual_bash'] }
  return beginTurns(tenants, count, (tenant) => addAgent(tenant, agent))
}

/** Begins turns of a model of the stub. */
export const beginStubTurns = (tenants: Tenant[], count: number, stubPort: number, model: StubModel): Promise<Attack> =>
  beginTurns(tenants, count, (tenant) => addAgentOfStub(tenant, stubPort, model))

async function beginTurns(
  tenants: Tenant[],
  count: number,
  makeAgent: (tenant: Tenant) => Promise<string>,
): Promise<Attack> {
  const places = await Promise.all(
    tenants.slice(0, count).map(async (tenant) => ({ tenant, agentId: await makeAgent(tenant) })),
  )
  const sessions = await addSessions(places, count, BEGIN_MS)
  return {
    accepted: await sayToAll(sessions, BEGIN_MS),
    stop: () => forEach(sessions, ({ tenant, id }) => tenant.ask('POST', `/v1/sessions/${id}/cancel`)),
  }
}

const EACH_10_S = '*/10 * * * * *'
const YEARLY = '0 0 1 1 *'
/** Makes an unanswered execution send its request again. */
const RETRIES = { max_attempts: 100, initial_interval_ms: 100, max_interval_ms: 1000 }

/** Creates schedules whose requests the stub never answers: one execution of each, or one each 10 s. */
export async function beginExecutions(
  tenants: Tenant[],
  count: number,
  stubPort: number,
  often: 'once' | 'each 10 s',
): Promise<Attack> {
  const items = Array.from({ length: count }, (_, number) => ({
    number,
    tenant: tenants[number % tenants.length] as Tenant,
  }))
  const input = { url: `http://127.0.0.1:${stubPort}/hang`, method: 'GET' }
  const create = async ({ number, tenant: { ask } }: (typeof items)[number]) => {
    const { id } = await ask('POST', '/v1/durable/schedules', {
      name: `hung ${number}`,
      cron_expression: often === 'once' ? YEARLY : EACH_10_S,
      target: { type: 'activity', name: 'http_request', input },
      ...(often === 'once' ? { retry_policy: RETRIES } : {}),
    })
    const path = `/v1/durable/schedules/${id}`
    if (often === 'once') await ask('POST', `${path}/trigger`)
    return { ask, path }
  }
  const { done, failed } = await forEach(items, create, BEGIN_MS)
  reportFailed(failed)
  return { accepted: done.length, stop: () => forEach(done, ({ ask, path }) => ask('DELETE', path)) }
}

/** Opens as many streams as a session may have, in as many sessions as are needed. */
export async function openStreams(tenants: Tenant[], count: number, port: number): Promise<Attack> {
  const each = Math.ceil(count / tenants.length / STREAMS_PER_SESSION)
  const opened = await Promise.all(
    tenants.map(async (tenant) => {
      const agentId = await addAgent(tenant, { model: ECHO_MODEL_ID })
      const { done } = await forEach(Array(each).fill(agentId), (id: string) => addSession(tenant, id))
      const paths = done.flatMap((id) => Array(STREAMS_PER_SESSION).fill(`/v1/sessions/${id}/sse`))
      return openClients(port, paths.slice(0, Math.ceil(count / tenants.length)), undefined, tenant.headers)
    }),
  )
  return {
    accepted: opened.reduce((sum, clients) => sum + clients.opened, 0),
    stop: async () => {
      for (const clients of opened) clients.close()
    },
  }
}
