import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { freePorts, type RunningServices } from '../dev/services/index.ts'
import { beginCommands, beginExecutions, beginSlowTurns, openStreams, spawnAttacked } from './attacker.ts'
import { startChild } from './child.ts'
import {
  createUser,
  KINDS,
  type Kind,
  LIMIT_MS,
  missed,
  type Probed,
  p50,
  p95,
  probe,
  shownMs,
  type User,
} from './probe.ts'
import { goal, print } from './report.ts'
import { percentile } from './statistics.ts'
import { forEach, signUp } from './tenant.ts'
import { type Ledger, openLedger, waitUntilBegun } from './waiting-turns.ts'

const ORGANIZATIONS = 10
const WARM_UP = 100
const SETTLE_MS = 15_000
const MAX_RATIO = 2
const STREAMS = 10_000

/** Number and interval of a user's requests of each kind. */
const PROBES: Record<Kind, [count: number, everyMs: number]> = {
  'first token': [40, 250],
  'turn with a tool': [16, 500],
  'turn with bash': [6, 1500],
  'opening a stream': [10, 200],
}
type AllProbed = Record<Kind, Probed>

/**
 * Makes one user with ten organizations begin 4,000 slow turns, 300 hung executions and 100 bash commands, and with
 * `--streams` open 10,000 streams. Measures another organization's requests meanwhile, and alone as the floor.
 * `--scale=0.1` takes a tenth of all numbers.
 */
export async function benchFairness(services: RunningServices, port: number, args: string[]): Promise<boolean> {
  const { values } = parseArgs({
    args,
    options: { scale: { type: 'string', default: '1' }, streams: { type: 'boolean', default: false } },
  })
  const of = (count: number) => Math.round(count * Number(values.scale))
  const baseUrl = `http://127.0.0.1:${port}`
  const [stubPort = 0] = await freePorts(1)
  const stub = await startChild('./stub.ts', { args: [`${stubPort}`] })
  const ledger = await openLedger(services)
  const app = await spawnAttacked(services, port)
  const health = await startChild('./hostile-health.ts', { args: [baseUrl] })
  try {
    const attackers = await signUp(baseUrl, 'attacker', ORGANIZATIONS)
    const [other] = await signUp(baseUrl, 'other', 1)
    if (other?.id === undefined) throw new Error('no organization')
    const user = await createUser(other)
    await forEach(Array(WARM_UP).fill(undefined), user['first token'])
    await health.ask('take')
    const alone = await probeAll(user)
    const calm = await health.ask<number[]>('take')
    const commands = await beginCommands(attackers, of(100))
    const executions = await beginExecutions(attackers, of(300), stubPort, 'once')
    const turns = await beginSlowTurns(attackers, of(4000))
    const streams = values.streams ? await openStreams(attackers, of(STREAMS), port) : undefined
    print(`one user: ${turns.accepted} slow turns, ${executions.accepted} schedules, ${commands.accepted} commands`)
    if (streams !== undefined) print(`and ${streams.accepted} streams`)
    const begun = await waitUntilBegun(ledger, turns.accepted + commands.accepted, SETTLE_MS)
    await sleep(SETTLE_MS)
    print(`${begun} of these turns have begun, ${await stub.ask('open')} executions wait for an answer`)
    await health.ask('take')
    const since = new Date()
    const beside = await probeAll(user)
    const times = await health.ask<number[]>('take')
    printHealth('alone', calm)
    printHealth('beside', times)
    await printQueue(ledger, other.id, since)
    await streams?.stop()
    return report(alone, beside)
  } finally {
    await health.stop()
    await app.stop()
    await stub.stop()
    await ledger.close()
  }
}

async function probeAll(user: User): Promise<AllProbed> {
  const each: [Kind, Probed][] = []
  for (const kind of KINDS) each.push([kind, await probe(...PROBES[kind], user[kind])])
  return Object.fromEntries(each) as AllProbed
}

function printHealth(name: string, times: number[]): void {
  const [half, most, worst] = [percentile(times, 0.5), percentile(times, 0.99), Math.max(...times)]
  print(`/health ${name}: p50 ${half.toFixed(1)}, p99 ${most.toFixed(1)}, worst ${worst.toFixed(1)} ms`)
}

/** Prints how long the organization's turns were queued, from the record: until their start, or their end without one. */
async function printQueue({ pool }: Ledger, organizationId: string, since: Date): Promise<void> {
  const { rows } = await pool.query<{ ms: number; waits: boolean }>(
    `SELECT started_at IS NULL AS waits,
      (extract(epoch FROM coalesce(started_at, finished_at, now()) - created_at) * 1000)::float AS ms
    FROM turns WHERE organization_id = $1::uuid AND created_at > $2`,
    [organizationId, since],
  )
  const ms = rows.map((row) => row.ms)
  const waiting = rows.filter((row) => row.waits).length
  print(
    `queued in the record: p50 ${percentile(ms, 0.5).toFixed(0)}, p95 ${percentile(ms, 0.95).toFixed(0)}, worst ${Math.max(...ms).toFixed(0)} ms; ${waiting} of ${ms.length} never began`,
  )
}

function report(alone: AllProbed, beside: AllProbed): boolean {
  const cell = (text: string) => text.padStart(11)
  print(
    `\n${'another organization (ms)'.padEnd(28)}${['alone p50', 'p95', 'beside p50', 'p95', 'ratio p95', 'missed'].map(cell).join('')}`,
  )
  for (const kind of KINDS) {
    const [floor, probed] = [alone[kind], beside[kind]]
    const values = [p50(floor), p95(floor), p50(probed), p95(probed)].map(shownMs)
    const counts = [(p95(probed) / p95(floor)).toFixed(2), `${missed(probed)} of ${probed.times.length}`]
    print(`${kind.padEnd(28)}${[...values, ...counts].map(cell).join('')}`)
  }
  for (const reason of new Set(KINDS.flatMap((kind) => beside[kind].reasons))) print(`missed: ${reason.slice(0, 200)}`)
  print('')
  const ratio = p95(beside['first token']) / p95(alone['first token'])
  return [
    goal(ratio <= MAX_RATIO, `p95 of the first token, of that alone: at most ${MAX_RATIO}: ${ratio.toFixed(2)}`),
    ...KINDS.map((kind) =>
      goal(missed(beside[kind]) === 0, `${kind}: ${missed(beside[kind])} missed, within ${LIMIT_MS / 1000} s`),
    ),
  ].every(Boolean)
}
