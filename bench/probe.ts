import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from './statistics.ts'
import { addAgent, addSession, ECHO_MODEL_ID, type Tenant } from './tenant.ts'
import { openSession, runTurn } from './turn-client.ts'

/** Time to wait for a turn. */
export const LIMIT_MS = 40_000

/** Times in ms. A failure, or a time beyond the limit, is infinite. */
export type Probed = { times: number[]; reasons: string[] }

/** Begins `count` times, one each `everyMs`, however long the ones before take. */
export async function probe(count: number, everyMs: number, run: () => Promise<number>): Promise<Probed> {
  const reasons: string[] = []
  const one = async (index: number): Promise<number> => {
    await sleep(index * everyMs)
    return run().catch((error) => {
      reasons.push(String(error).replace(/\w*[0-9a-f]{32}/g, '…'))
      return Number.POSITIVE_INFINITY
    })
  }
  return { times: await Promise.all(Array.from({ length: count }, (_, index) => one(index))), reasons }
}

export const p50 = ({ times }: Probed): number => percentile(times, 0.5)
export const p95 = ({ times }: Probed): number => percentile(times, 0.95)
export const missed = ({ times }: Probed): number => times.filter((ms) => !Number.isFinite(ms)).length

export const shownMs = (ms: number): string => (Number.isFinite(ms) ? ms.toFixed(ms < 100 ? 1 : 0) : `> ${LIMIT_MS}`)

export const KINDS = ['first token', 'turn with a tool', 'turn with bash', 'opening a stream'] as const
export type Kind = (typeof KINDS)[number]
/** Actions of a user, each in a new session. Each resolves with its time in ms. */
export type User = Record<Kind, () => Promise<number>>

const toolSteps = (name: string, args: object) => [{ tool_calls: [{ name, arguments: args }] }, { text: 'Done.' }]

/** Makes a user with an agent for each kind. `agentId` answers without tools; by default it repeats the message. */
export async function createUser(tenant: Tenant, agentId?: string): Promise<User> {
  const echo = agentId ?? (await addAgent(tenant, { model: ECHO_MODEL_ID }))
  const math = await addAgent(tenant, { steps: toolSteps('multiply', { a: 6, b: 7 }), capabilities: ['test_math'] })
  const bash = await addAgent(tenant, {
    steps: toolSteps('bash', { command: 'echo ok' }),
    capabilities: ['virtual_bash'],
  })
  return {
    'first token': async () => (await runNewTurn(tenant, echo)).firstMs,
    'turn with a tool': async () => runToolTurn(tenant, math),
    'turn with bash': async () => runToolTurn(tenant, bash),
    'opening a stream': async () => {
      const id = await addSession(tenant, echo)
      const startedAt = performance.now()
      const session = await openSession(tenant.baseUrl, id, { headers: tenant.headers, deadlineMs: LIMIT_MS })
      session.close()
      return performance.now() - startedAt
    },
  }
}

async function runNewTurn(tenant: Tenant, agentId: string) {
  const id = await addSession(tenant, agentId)
  const session = await openSession(tenant.baseUrl, id, { headers: tenant.headers, deadlineMs: LIMIT_MS })
  try {
    return { id, ...(await runTurn(tenant.baseUrl, session, { deadlineMs: LIMIT_MS })) }
  } catch (error) {
    // Excludes it from the turns that are measured later.
    await tenant.ask('POST', `/v1/sessions/${id}/cancel`)
    throw error
  } finally {
    session.close()
  }
}

/** Runs a turn with one call and returns its whole time. Rejects when the tool has failed. */
async function runToolTurn(tenant: Tenant, agentId: string): Promise<number> {
  const { id, wholeMs } = await runNewTurn(tenant, agentId)
  const { data } = await tenant.ask('GET', `/v1/sessions/${id}/events?types=tool.completed`)
  const [event] = data as { data: { success: boolean; error?: string } }[]
  if (event?.data.success !== true) throw new Error(`the tool failed: ${event?.data.error}`)
  return wholeMs
}
