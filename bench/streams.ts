import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { freePorts } from '../dev/services/index.ts'
import { type Child, startChild } from './child.ts'
import { type Cpu, cpuPerTurn, type Processes, readCpu, sumOf } from './cpu.ts'
import type { PeerName } from './peers/client.ts'
import { goal, print } from './report.ts'
import { type Ground, type Shape, startSite, startSiteBefore } from './site.ts'
import { median, percentile } from './statistics.ts'
import type { StreamsJob, StreamsSeen } from './streams-clients.ts'

const PER_SECOND = 20
const TOKENS = 400
const COUNTS = [50, 100, 200, 400]
/** Time from the last start to the measured window, and the window's length. */
const SETTLE_MS = 3000
const WINDOW_MS = 10_000
const ANSWER_MS = (TOKENS / PER_SECOND) * 1000
const SERVICE = 'service'
const BEFORE = 'before'
export const WARM_UP: Load = { count: 32, tokens: 40, spreadMs: 0 }

/** The goals of a stream: its cost of that before, and the time of 99 of 100 tokens at 400 streams. */
const MAX_COST = 0.5
const MAX_RELAY_MS = 400

/** Something that streams answers, and the processes that do it. */
export type Subject = { name: string; baseUrls: string[]; processes: Processes; peer?: PeerName }
export type Measured = StreamsSeen & { cpu: Cpu; residentMb: number }
/** The provider's process, and the process of all readers. */
export type Ends = { provider: Child; clients: Child }
type Load = Pick<StreamsJob, 'count' | 'tokens' | 'spreadMs'>

/**
 * Has sessions stream 20 tokens a second each, started together or (`--spread`) over the length of an answer, with a
 * reader each. Prints first token, relay (from a token's emission to its arrival), CPU for a second of a stream by role,
 * and memory, for the service, for an earlier version of it if BENCH_BEFORE is its folder, and for two floors: a relay
 * without a record, and bare inserts of the same rows. Arguments: numbers of sessions, `--shape=replicas` or `apart`, `--rounds=n`.
 */
export async function benchStreams(ground: Ground, args: string[]): Promise<boolean> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      spread: { type: 'boolean', default: false },
      shape: { type: 'string', default: 'together' },
      rounds: { type: 'string', default: '1' },
    },
  })
  const counts = positionals.length === 0 ? COUNTS : positionals.map(Number)
  const shape = values.shape as Shape
  const [providerPort = 0, floorPort = 0] = await freePorts(2)
  const provider = await startChild('./provider.ts', { args: [`${providerPort}`] })
  const clients = await startChild('./streams-clients.ts')
  const floor = await startChild('./streams-floor.ts', {
    args: [`${floorPort}`, `${providerPort}`],
    env: { DATABASE_URL: ground.services.databaseUrl },
  })
  const site = await startSite(ground, shape, providerPort)
  const before = await startSiteBefore(ground.dataDir, shape, providerPort)
  const floorOf = (name: string, kind: string): Subject => ({
    name,
    baseUrls: [`http://127.0.0.1:${floorPort}/${kind}`],
    processes: { floor: [floor.pid], Postgres: site.processes.Postgres ?? [] },
  })
  const subjects: Subject[] = [
    floorOf('bare relay', 'relay'),
    floorOf('bare inserts', 'insert'),
    ...(before === undefined ? [] : [{ name: BEFORE, ...before }]),
    { name: SERVICE, ...site },
  ]
  const results = new Map<string, Measured[]>()
  const ends = { provider, clients }
  try {
    for (const subject of subjects) await runStreams(ends, subject, WARM_UP)
    for (let round = 0; round < Number(values.rounds); round++) {
      for (const count of counts) {
        for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
          const spreadMs = values.spread ? ANSWER_MS : 0
          const measured = await measureStreams(ends, subject, { count, tokens: TOKENS, spreadMs })
          const key = `${count} ${subject.name}`
          results.set(key, [...(results.get(key) ?? []), measured])
          print(row(key, [measured]))
        }
      }
    }
    return report(
      counts,
      subjects.map(({ name }) => name),
      results,
    )
  } finally {
    await before?.stop()
    await site.stop()
    for (const child of [floor, clients, provider]) await child.stop()
  }
}

/** Has sessions stream, with a reader each. */
export async function runStreams({ provider, clients }: Ends, subject: Subject, load: Load): Promise<StreamsSeen> {
  const { baseUrls, peer } = subject
  await provider.ask({ tokens: load.tokens, pauseMs: 1000 / PER_SECOND, isStamped: true })
  return clients.ask<StreamsSeen>({ baseUrls, peer, ...load } satisfies StreamsJob)
}

/** Has sessions stream, and measures CPU and memory as well. */
export async function measureStreams(ends: Ends, subject: Subject, load: Load): Promise<Measured> {
  const running = runStreams(ends, subject, load)
  const watched = await watch(subject.processes, load.count, load.spreadMs > 0)
  return { ...(await running), ...watched }
}

/** Measures CPU for a second of a stream by role, and the service's memory, while the streams run. */
async function watch(
  processes: Processes,
  count: number,
  isSpread: boolean,
): Promise<Pick<Measured, 'cpu' | 'residentMb'>> {
  await sleep(isSpread ? ANSWER_MS - WINDOW_MS / 2 : SETTLE_MS)
  const from = readCpu(processes)
  await sleep(WINDOW_MS)
  const to = readCpu(processes)
  // Spread streams are most in the middle: some have not begun before it, or have ended after it.
  const present = isSpread ? 1 - WINDOW_MS / (4 * ANSWER_MS) : 1
  const own = Object.entries(processes).flatMap(([role, pids]) => (isOurs(role) ? pids : []))
  return {
    cpu: cpuPerTurn(from, to, (present * count * WINDOW_MS) / 1000),
    residentMb: own.reduce((sum, pid) => sum + residentMb(pid), 0),
  }
}

const isOurs = (role: string): boolean => !['Temporal', 'Postgres', 'Redis'].includes(role)

const residentMb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? Number.NaN) / 1024

export const HEADER = `${'streams'.padEnd(22)}first p50    p95  relay p50    p95    p99   MiB  CPU ms of a second of a stream`

export function row(name: string, rounds: Measured[]): string {
  const of = (value: (measured: Measured) => number) => median(rounds.map(value))
  const shown = (value: (measured: Measured) => number, width: number, digits = 0) =>
    of(value).toFixed(digits).padStart(width)
  const roles = Object.keys(rounds[0]?.cpu ?? {}).map(
    (role) => `${role} ${of(({ cpu }) => cpu[role] ?? Number.NaN).toFixed(2)}`,
  )
  return [
    name.padEnd(22),
    shown(({ firstMs }) => percentile(firstMs, 0.5), 9),
    shown(({ firstMs }) => percentile(firstMs, 0.95), 7),
    shown(({ relay }) => relay.p50, 11),
    shown(({ relay }) => relay.p95, 7),
    shown(({ relay }) => relay.p99, 7),
    shown(({ residentMb }) => residentMb, 6),
    shown(({ cpu }) => sumOf(cpu), 7, 2),
    `: ${roles.join(', ')}`,
  ].join('')
}

function report(counts: number[], names: string[], results: Map<string, Measured[]>): boolean {
  const of = (count: number, name: string) => results.get(`${count} ${name}`) ?? []
  print(`\n${HEADER}`)
  for (const count of counts) for (const name of names) print(row(`${count} ${name}`, of(count, name)))
  print('')
  const wrong = [...results].flatMap(([key, rounds]) =>
    rounds.flatMap(({ wrong }) => wrong.map((one) => `${key}: ${one}`)),
  )
  for (const sentence of wrong.slice(0, 5)) print(sentence)
  const cost = (name: string) => median(of(100, name).map(({ cpu }) => sumOf(cpu)))
  const ratio = cost(SERVICE) / cost(BEFORE)
  const slowest = median(of(400, SERVICE).map(({ relay }) => relay.p99))
  return [
    goal(wrong.length === 0, `all tokens once and in order (${wrong.length} streams differ)`),
    ...(Number.isNaN(ratio)
      ? []
      : [
          goal(
            ratio <= MAX_COST,
            `CPU at 100 streams, of the version before: at most ${MAX_COST}: ${ratio.toFixed(2)}`,
          ),
        ]),
    ...(Number.isNaN(slowest)
      ? []
      : [goal(slowest <= MAX_RELAY_MS, `relay p99 at 400 streams: at most ${MAX_RELAY_MS} ms: ${slowest.toFixed(0)}`)]),
  ].every(Boolean)
}
