import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { freePorts, type RunningServices } from '../dev/services/index.ts'
import {
  type Attack,
  beginCommands,
  beginExecutions,
  beginSlowTurns,
  beginStubTurns,
  openStreams,
  spawnAttacked,
} from './attacker.ts'
import { type Child, startChild } from './child.ts'
import { createUser, KINDS, type Kind, missed, type Probed, p50, p95, probe, shownMs, type User } from './probe.ts'
import { goal, print } from './report.ts'
import { percentile } from './statistics.ts'
import { forEach, signUp, type Tenant } from './tenant.ts'
import { type Ledger, openLedger } from './waiting-turns.ts'

const ORGANIZATIONS = 10
const WARM_UP = 100
const MAX_HEALTH_MS = 300
/** Time in which the turns left by an attack end. */
const REST_MS = 20_000

/** Number and interval of another organization's requests of each kind, all at the same time. */
const PROBES: Record<Kind, [count: number, everyMs: number]> = {
  'first token': [30, 1000],
  'turn with a tool': [15, 2000],
  'turn with bash': [4, 7000],
  'opening a stream': [15, 2000],
}

type Row = { name: string; accepted: number; health: number[]; probed: Record<Kind, Probed> }
type Begin = (attackers: Tenant[], ports: { api: number; stub: number }) => Promise<Attack>

/** Attacks of one user. The last two are turns of a provider of one's own. */
const ATTACKS: { [name: string]: Begin } = {
  calm: async () => ({ accepted: 0, stop: async () => {} }),
  turns: (attackers) => beginSlowTurns(attackers, 900),
  streams: (attackers, { api }) => openStreams(attackers, 10_000, api),
  commands: (attackers) => beginCommands(attackers.slice(0, 2), 4),
  calls: (attackers, { stub }) => beginStubTurns(attackers.slice(0, 1), 4, stub, 'calls'),
  endless: (attackers, { stub }) => beginStubTurns(attackers.slice(0, 1), 8, stub, 'endless'),
  executions: (attackers, { stub }) => beginExecutions(attackers.slice(0, 1), 240, stub, 'each 10 s'),
}

/**
 * Plays one attack after the other, first a calm time. Prints the times of /health and of another organization's requests
 * during each. Arguments name the attacks to play.
 */
export async function benchAttacks(services: RunningServices, port: number, args: string[]): Promise<boolean> {
  const { positionals } = parseArgs({ args, allowPositionals: true })
  const names = Object.keys(ATTACKS).filter((name) => positionals.length === 0 || positionals.includes(name))
  const baseUrl = `http://127.0.0.1:${port}`
  const [stubPort = 0] = await freePorts(1)
  const stub = await startChild('./stub.ts', { args: [`${stubPort}`] })
  const ledger = await openLedger(services)
  const app = await spawnAttacked(services, port)
  const health = await startChild('./hostile-health.ts', { args: [baseUrl] })
  try {
    const attackers = await signUp(baseUrl, 'attacker', ORGANIZATIONS)
    const [other] = await signUp(baseUrl, 'other', 1)
    if (other === undefined) throw new Error('no organization')
    const user = await createUser(other)
    await forEach(Array(WARM_UP).fill(undefined), user['first token'])
    printHead()
    const rows: Row[] = []
    for (const name of names) {
      const begin = () => (ATTACKS[name] as Begin)(attackers, { api: port, stub: stubPort })
      rows.push(await play(name, begin, user, health, ledger))
    }
    print('')
    return rows.map(report).every(Boolean)
  } finally {
    await health.stop()
    await app.stop()
    await stub.stop()
    await ledger.close()
  }
}

async function play(
  name: string,
  begin: () => Promise<Attack>,
  user: User,
  health: Child,
  ledger: Ledger,
): Promise<Row> {
  await health.ask('take')
  const attack = await begin()
  const probed = await Promise.all(KINDS.map(async (kind) => [kind, await probe(...PROBES[kind], user[kind])]))
  const row = {
    name,
    accepted: attack.accepted,
    health: await health.ask<number[]>('take'),
    probed: Object.fromEntries(probed),
  }
  printRow(row)
  await attack.stop()
  for (const until = Date.now() + REST_MS; Date.now() < until && (await ledger.unfinished()).all > 0; ) await sleep(500)
  return row
}

const cell = (text: string): string => text.padStart(9)

function printHead(): void {
  const titles = [
    '/health50',
    '99',
    'worst',
    'first50',
    '95',
    'missed',
    'tool50',
    'missed',
    'bash50',
    'missed',
    'stream50',
    'missed',
  ]
  print(`${'attack (ms)'.padEnd(18)}${titles.map(cell).join('')}`)
}

function printRow({ name, accepted, health, probed }: Row): void {
  const times = [percentile(health, 0.5), percentile(health, 0.99), Math.max(...health)].map((ms) => ms.toFixed(0))
  const first = probed['first token']
  const others = KINDS.slice(1).flatMap((kind) => [shownMs(p50(probed[kind])), `${missed(probed[kind])}`])
  const cells = [...times, shownMs(p50(first)), shownMs(p95(first)), `${missed(first)}`, ...others]
  print(`${`${name} ${accepted || ''}`.padEnd(18)}${cells.map(cell).join('')}`)
}

function report({ name, health, probed }: Row): boolean {
  const p99 = percentile(health, 0.99)
  const all = KINDS.map((kind) => missed(probed[kind])).reduce((sum, count) => sum + count, 0)
  for (const reason of new Set(KINDS.flatMap((kind) => probed[kind].reasons)))
    print(`  ${name}: ${reason.slice(0, 200)}`)
  return [
    goal(p99 <= MAX_HEALTH_MS, `${name}: p99 of /health at most ${MAX_HEALTH_MS} ms: ${p99.toFixed(0)}`),
    goal(all === 0, `${name}: another organization missed nothing: ${all}`),
  ].every(Boolean)
}
