import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, Connection } from '@temporalio/client'
import { Redis } from 'ioredis'
import pg from 'pg'
import { freePorts, type RunningServices } from '../dev/services/index.ts'
import { type Costs, type Demand, needOf, type Parts, turnsPerSecond } from './capacity-model.ts'
import { type Child, startChild } from './child.ts'
import { type Cpu, cpuPerTurn, readCpu, sumOf } from './cpu.ts'
import { type Load, siteSubject } from './load.ts'
import { goal, print } from './report.ts'
import { SIXTY_FOUR } from './rounds.ts'
import { type Ground, type Shape, type Site, startSite } from './site.ts'
import type { StreamsJob } from './streams-clients.ts'

const SHAPES: Shape[] = ['together', 'replicas', 'apart']
const LOAD: Load = { ...SIXTY_FOUR, count: 512 }
const STREAMS = 60
const TOKENS = 400
const PER_SECOND = 20
/** Time until all streams run, and for which they are then watched. */
const SETTLE_MS = 4000
const WINDOW_MS = 10_000
const DEMANDS: Demand[] = [10, 1000, 100_000].map((turns) => ({ turnsPerSecond: turns, secondsOfTurn: 15 }))
const MAX_ERROR = 0.3
/** Time after which Postgres has written its statistics. */
const STATISTICS_MS = 1500
/** Number of workflows whose actions are counted. */
const SAMPLE = 20

type Counts = { walBytes: number; storedBytes: number; commits: number; redisBytes: number }
/** Counts all at once what the services have done so far. */
type Counter = { read(): Promise<Counts>; actionsOfTurn(): Promise<number>; close(): Promise<void> }

/**
 * Measures what a turn and a second of a stream cost by part, in each shape of the service, compares the turns a second
 * that follow from the costs with measured ones, and prints what 10, 1,000 and 100,000 turns a second need.
 */
export async function benchCapacity(ground: Ground): Promise<boolean> {
  const [providerPort = 0] = await freePorts(1)
  const provider = await startChild('./provider.ts', { args: [`${providerPort}`] })
  const clients = await startChild('./streams-clients.ts')
  const counter = await startCounter(ground.services)
  const met: boolean[] = []
  let first: Costs | undefined
  try {
    for (const shape of SHAPES) {
      const site = await startSite(ground, shape, providerPort)
      try {
        const subject = siteSubject(shape, site, provider)
        await subject.measure(LOAD)
        const before = { own: ownCpuMs(provider), counts: await counter.read() }
        const turns = await subject.measure(LOAD)
        const ownMs = (ownCpuMs(provider) - before.own) / LOAD.count
        const counts = perUnit(before.counts, await counter.read(), LOAD.count)
        const turn = { ...counts, cpu: partsOf(turns.cpu), actions: await counter.actionsOfTurn() }
        const costs = { turn, second: await measureStreams(site, { provider, clients, counter }) }
        first ??= costs
        printCosts(shape, costs)
        const predicted = turnsPerSecond(availableParallelism(), sumOf(turns.cpu), ownMs)
        const error = Math.abs(turns.perSecond / predicted - 1)
        const sentence = `${turns.perSecond.toFixed(0)} turns a second, ${predicted.toFixed(0)} from the costs`
        met.push(goal(error <= MAX_ERROR, `${shape}: ${sentence}: at most ${MAX_ERROR * 100} % apart`))
      } finally {
        await site.stop()
      }
    }
    if (first !== undefined) printNeeds(first)
    return met.every(Boolean)
  } finally {
    await counter.close()
    await clients.stop()
    await provider.stop()
  }
}

/** Measures a second of a stream, while some run. */
async function measureStreams(
  site: Site,
  { provider, clients, counter }: { provider: Child; clients: Child; counter: Counter },
): Promise<Costs['second']> {
  await provider.ask({ tokens: TOKENS, pauseMs: 1000 / PER_SECOND, isStamped: true })
  const running = clients.ask({
    baseUrls: site.baseUrls,
    count: STREAMS,
    tokens: TOKENS,
    spreadMs: 0,
  } satisfies StreamsJob)
  await sleep(SETTLE_MS)
  const [cpu, counts] = [readCpu(site.processes), await counter.read()]
  await sleep(WINDOW_MS)
  const seconds = (STREAMS * (WINDOW_MS + STATISTICS_MS)) / 1000
  const measured = { cpu: partsOf(cpuPerTurn(cpu, readCpu(site.processes), (STREAMS * WINDOW_MS) / 1000)) }
  const { walBytes, commits, redisBytes } = perUnit(counts, await counter.read(), seconds)
  await running
  return { ...measured, walBytes, commits, redisBytes }
}

/** CPU in ms of this process and of the provider, which share the machine. */
function ownCpuMs(provider: Child): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000 + sumOf(readCpu({ provider: [provider.pid] }))
}

/** Adds up the roles of the service. */
const partsOf = ({ Temporal = 0, Postgres = 0, Redis = 0, ...service }: Cpu): Parts => ({
  service: sumOf(service),
  Temporal,
  Postgres,
  Redis,
})

const perUnit = (before: Counts, after: Counts, units: number): Counts => ({
  walBytes: (after.walBytes - before.walBytes) / units,
  storedBytes: (after.storedBytes - before.storedBytes) / units,
  commits: (after.commits - before.commits) / units,
  redisBytes: (after.redisBytes - before.redisBytes) / units,
})

async function startCounter({ databaseUrl, redisUrl, temporalAddress }: RunningServices): Promise<Counter> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  const redis = new Redis(redisUrl)
  const connection = await Connection.connect({ address: temporalAddress })
  const { workflow } = new Client({ connection })
  const numberIn = (info: string, field: string) => Number(new RegExp(`${field}:(\\d+)`).exec(info)?.[1])
  return {
    read: async () => {
      await sleep(STATISTICS_MS)
      const { rows } = await pool.query(`SELECT pg_current_wal_lsn() - '0/0'::pg_lsn AS wal,
        (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS commits,
        (SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r'
          AND relnamespace = 'public'::regnamespace) AS stored`)
      const info = await redis.info('stats')
      return {
        walBytes: Number(rows[0].wal),
        storedBytes: Number(rows[0].stored),
        commits: Number(rows[0].commits),
        redisBytes: numberIn(info, 'total_net_input_bytes') + numberIn(info, 'total_net_output_bytes'),
      }
    },
    actionsOfTurn: async () => {
      const { rows } = await pool.query('SELECT id FROM turns ORDER BY created_at DESC LIMIT $1', [SAMPLE])
      let actions = 0
      for (const { id } of rows) {
        const { events } = await workflow.getHandle(`turn_${id.replaceAll('-', '')}`).fetchHistory()
        actions += (events ?? []).filter(isAction).length
      }
      return actions / rows.length
    },
    close: async () => {
      await pool.end()
      redis.disconnect()
      await connection.close()
    },
  }
}

/** Whether an event of a history is an action as Temporal's price list counts them: starts, activities, markers of local ones. */
const isAction = (event: object): boolean =>
  [
    'workflowExecutionStartedEventAttributes',
    'activityTaskScheduledEventAttributes',
    'markerRecordedEventAttributes',
    'workflowExecutionSignaledEventAttributes',
    'timerStartedEventAttributes',
  ].some((attributes) => (event as Record<string, unknown>)[attributes] != null)

const shownParts = (cpu: Parts, digits: number): string =>
  Object.entries(cpu)
    .map(([part, value]) => `${part} ${value.toFixed(digits)}`)
    .join(', ')

function printCosts(shape: Shape, { turn, second }: Costs): void {
  print(`\n${shape}`)
  print(`  a turn of 20 instant tokens   CPU ms: ${shownParts(turn.cpu, 1)}`)
  print(
    `    Postgres ${turn.commits.toFixed(1)} commits, ${kB(turn.walBytes)} WAL, ${kB(turn.storedBytes)} stored; Redis ${kB(turn.redisBytes)}; Temporal ${turn.actions.toFixed(1)} actions`,
  )
  print(`  a second of a stream          CPU ms: ${shownParts(second.cpu, 2)}`)
  print(`    Postgres ${second.commits.toFixed(1)} commits, ${kB(second.walBytes)} WAL; Redis ${kB(second.redisBytes)}`)
}

const kB = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`

function printNeeds(costs: Costs): void {
  for (const demand of DEMANDS) {
    const { cores, replicas, storedGbPerDay, parts, first, cells } = needOf(costs, demand)
    print(`\n${demand.turnsPerSecond} turns a second that stream ${demand.secondsOfTurn} s each`)
    print(`  cores: ${shownParts(cores, 1)}; replicas ${replicas}; stored ${storedGbPerDay.toFixed(0)} GB a day`)
    for (const { part, need, limit, unit, share } of parts) {
      print(`  ${part.padEnd(21)}${need.toFixed(1)} ${unit} of ${limit} in a cell: ${(share * 100).toFixed(0)} %`)
    }
    print(`  ${cells} cell${cells === 1 ? '' : 's'}; ends first: ${first}`)
  }
}
