import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { freePorts } from '../dev/services/index.ts'
import { type Child, startChild } from './child.ts'
import { type Cpu, type Processes, readCpu } from './cpu.ts'
import type { Memory } from './memory.ts'
import { createUser, LIMIT_MS, missed, type Probed, p50, p95, probe, shownMs } from './probe.ts'
import { goal, print } from './report.ts'
import { type Ground, readServiceProcesses } from './site.ts'
import { percentile } from './statistics.ts'
import { addAgent, addAgentOfStub, createTenant, forEach } from './tenant.ts'
import {
  addSessions,
  type Cancelled,
  cancelAll,
  type Ledger,
  openLedger,
  sayToAll,
  waitUntilAttended,
  waitUntilBegun,
} from './waiting-turns.ts'

/** How turns wait: in the service's own simulator, or each over a socket that is silent or brings a token each 30 s. */
const KINDS = ['script', 'silent', 'drip'] as const
type Kind = (typeof KINDS)[number]
type Options = { count: number; isApart: boolean }

const SLOW_MS = 1_400_000
const WARM_UP = 200
const PROBES = 40
const PROBE_EVERY_MS = 250
const BEGIN_MS = 60_000
const SETTLE_MS = 5000
const WINDOW_MS = 15_000
const HEALTH_MS = 10_000

const MAX_RATIO = 2
const MAX_KB = 200
const MAX_HEALTH_MS = 100
const MAX_CANCEL_MS = 10_000

type Measured = {
  name: string
  begun: number
  beginMs: number
  attendMs: number
  alone: Probed
  beside: Probed
  after: Probed
  /** Of all processes of the service, after collecting garbage: before the turns, and while they wait. */
  memory: [Memory, Memory]
  /** Cores that each role uses: with nothing to do, and while the turns wait. */
  cores: [Cpu, Cpu]
  health: number[]
} & Cancelled

/**
 * Has 2,000 turns wait for their models in one process, and measures a new turn's first token beside them, memory, CPU,
 * /health, and the time to cancel all. The floor is the same turn alone. `--calls=n`, `--apart`, and names of kinds.
 */
export async function benchMany(ground: Ground, args: string[]): Promise<boolean> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { calls: { type: 'string', default: '2000' }, apart: { type: 'boolean', default: false } },
  })
  const options = { count: Number(values.calls), isApart: values.apart }
  const kinds =
    positionals.length === 0 ? (['script', 'silent'] as const) : KINDS.filter((kind) => positionals.includes(kind))
  const ledger = await openLedger(ground.services)
  const [stubPort = 0] = await freePorts(1)
  const stub = await startChild('./stub.ts', { args: [`${stubPort}`] })
  try {
    const met: boolean[] = []
    for (const kind of kinds) met.push(report(await measure(ground, ledger, kind, stubPort, options), options))
    return met.every(Boolean)
  } finally {
    await stub.stop()
    await ledger.close()
  }
}

async function measure(
  ground: Ground,
  ledger: Ledger,
  kind: Kind,
  stubPort: number,
  options: Options,
): Promise<Measured> {
  const [port = 0] = await freePorts(1)
  const baseUrl = `http://127.0.0.1:${port}`
  const roles = await startRoles(ground, port, options)
  const services = await readServiceProcesses(ground.dataDir)
  const processes: Processes = {
    ...Object.fromEntries(Object.entries(roles).map(([role, { pid }]) => [role, [pid]])),
    ...services,
  }
  try {
    const tenant = createTenant(baseUrl)
    const ofStub = (model: string) => addAgentOfStub(tenant, stubPort, model)
    const agentId =
      kind === 'script' ? await addAgent(tenant, { steps: [{ delay_ms: SLOW_MS, text: 'late' }] }) : await ofStub(kind)
    const user = await createUser(tenant, kind === 'script' ? undefined : await ofStub('quick'))
    const probeTurns = () => probe(PROBES, PROBE_EVERY_MS, user['first token'])
    await forEach(Array(WARM_UP).fill(undefined), user['first token'])
    const sessions = await addSessions([{ tenant, agentId }], options.count)
    const alone = await probeTurns()
    const idle = await readCores(processes)
    const before = await readMemory(roles)
    const startedAt = performance.now()
    await sayToAll(sessions)
    const begun = await waitUntilBegun(ledger, options.count, BEGIN_MS)
    const beginMs = performance.now() - startedAt
    const attendMs = beginMs + (await waitUntilAttended(ledger))
    await sleep(SETTLE_MS)
    const waiting = await readCores(processes)
    const memory: [Memory, Memory] = [before, await readMemory(roles)]
    const health = await startChild('./hostile-health.ts', { args: [baseUrl] })
    await sleep(HEALTH_MS)
    const beside = await probeTurns()
    const times = await health.ask<number[]>('take')
    await health.stop()
    const cancelled = await cancelAll(ledger, sessions)
    const after = await probeTurns()
    const name = `${kind}, ${options.isApart ? 'apart' : 'one process'}`
    return {
      name,
      begun,
      beginMs,
      attendMs,
      alone,
      beside,
      after,
      memory,
      cores: [idle, waiting],
      health: times,
      ...cancelled,
    }
  } finally {
    for (const role of Object.values(roles)) await role.stop()
  }
}

async function startRoles(
  { services }: Ground,
  port: number,
  { isApart }: Options,
): Promise<{ [role: string]: Child }> {
  const env = {
    DATABASE_URL: services.databaseUrl,
    REDIS_URL: services.redisUrl,
    TEMPORAL_ADDRESS: services.temporalAddress,
    PORT: `${port}`,
    LOG_LEVEL: 'error',
    ALLOW_PRIVATE_NETWORK: 'true',
    // A model may be silent for as long as the bench takes.
    LLM_IDLE_TIMEOUT_SECS: '3600',
  }
  const start = (...args: string[]) => startChild('./growth-service.ts', { args, env })
  // The API migrates the database, which the worker waits for.
  return isApart ? { api: await start('api'), worker: await start('worker') } : { service: await start() }
}

async function readCores(processes: Processes): Promise<Cpu> {
  const before = readCpu(processes)
  await sleep(WINDOW_MS)
  const after = readCpu(processes)
  return Object.fromEntries(
    Object.keys(after).map((role) => [role, ((after[role] ?? 0) - (before[role] ?? 0)) / WINDOW_MS]),
  )
}

async function readMemory(roles: { [role: string]: Child }): Promise<Memory> {
  const each = await Promise.all(Object.values(roles).map((role) => role.ask<Memory>('memory')))
  const sum = (of: keyof Memory) => each.reduce((total, memory) => total + memory[of], 0)
  return { live: sum('live'), resident: sum('resident') }
}

const shown = (probed: Probed): string => `p50 ${shownMs(p50(probed))}, p95 ${shownMs(p95(probed))} ms`

function report(measured: Measured, { count }: Options): boolean {
  const { name, begun, beginMs, attendMs, alone, beside, after, memory, cores, health, answeredMs, endedMs, closedMs } =
    measured
  const ratio = p95(beside) / p95(alone)
  const kB = (of: keyof Memory) => (memory[1][of] - memory[0][of]) / 1000 / Math.max(1, begun)
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
  const coresOf = (cpu: Cpu) =>
    Object.entries(cpu)
      .map(([role, used]) => `${role} ${used.toFixed(2)}`)
      .join(', ')
  const healthP99 = percentile(health, 0.99)
  print(`\n${count} turns that wait: ${name}`)
  print(`  begun                      ${begun} of ${count}, ${seconds(beginMs)} after the first message`)
  print(`  known to Temporal          all of them ${seconds(attendMs)} after the first message`)
  print(`  first token alone          ${shown(alone)}`)
  print(`  first token beside them    ${shown(beside)}, ${ratio.toFixed(2)} times`)
  print(`  first token afterwards     ${shown(after)}`)
  print(`  memory of a waiting turn   resident ${kB('resident').toFixed(0)} kB, reachable ${kB('live').toFixed(0)} kB`)
  print(`  cores with nothing to do   ${coresOf(cores[0])}`)
  print(`  cores while they wait      ${coresOf(cores[1])}`)
  print(`  /health beside them        p50 ${percentile(health, 0.5).toFixed(1)}, p99 ${healthP99.toFixed(1)} ms`)
  print(
    `  cancelled                  answered after ${seconds(answeredMs)}, recorded after ${seconds(endedMs)}, closed in Temporal after ${seconds(closedMs)}`,
  )
  for (const reason of new Set(beside.reasons)) print(`  not counted: ${reason}`)
  return [
    goal(begun >= count, `all ${count} wait at once: ${begun}`),
    goal(
      missed(beside) === 0,
      `every new turn begins: ${missed(beside)} of ${PROBES} did not within ${LIMIT_MS / 1000} s`,
    ),
    goal(ratio <= MAX_RATIO, `p95 of the first token, of that alone: at most ${MAX_RATIO}: ${ratio.toFixed(2)}`),
    goal(kB('resident') <= MAX_KB, `memory of a waiting turn: at most ${MAX_KB} kB: ${kB('resident').toFixed(0)}`),
    goal(healthP99 <= MAX_HEALTH_MS, `p99 of /health: at most ${MAX_HEALTH_MS} ms: ${healthP99.toFixed(1)}`),
    goal(endedMs <= MAX_CANCEL_MS, `all cancelled in the record within 10 s: ${seconds(endedMs)}`),
    goal(closedMs <= MAX_CANCEL_MS, `all closed in Temporal within 10 s: ${seconds(closedMs)}`),
  ].every(Boolean)
}
