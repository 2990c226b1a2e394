import pg from 'pg'
import { freePorts, type RunningServices } from '../dev/services/index.ts'
import { type Child, startChild } from './child.ts'
import { openLongSession } from './long-session.ts'
import type { Memory } from './memory.ts'
import type { Pace } from './provider.ts'
import { goal, print } from './report.ts'
import { ROUNDS } from './rounds.ts'
import { type Ground, providerEnvironment } from './site.ts'
import { median, runLanes } from './statistics.ts'
import { createSession, type OpenSession, openClient, runTurn } from './turn-client.ts'

const PACE: Pace = { tokens: 20, pauseMs: 0 }
const IN_FLIGHT = 16
const WARM_UP = 160
const TURNS_PER_SESSION = 10

const MESSAGES = [10, 1000, 5000]
const TURNS_OF_ROUND = 10
const MAX_AT_1000 = 1.5

const PARTS = 5
const TURNS_OF_PART = 100
/** A hundred turns take some 65 pages, in tables and indexes that grow by whole ones. */
const MAX_STORAGE = 1.2

const BLOCKS = 10
/** 10,000 turns in ten blocks, with five rounds. */
const TURNS_OF_BLOCK = 200 * ROUNDS
const MAX_MEMORY = 1.1

type Bench = { baseUrl: string; service: Child; pool: pg.Pool }

/**
 * Measures what grows: the first token in long sessions, the storage that a turn takes, and the memory of a process.
 * Prints the numbers and the goals; see docs/benchmarks.md. BENCH_ROUNDS makes it shorter.
 */
export async function benchGrowth({ services }: Ground): Promise<boolean> {
  const [providerPort = 0] = await freePorts(1)
  const provider = await startChild('./provider.ts', { args: [`${providerPort}`] })
  await provider.ask(PACE)
  const pool = new pg.Pool({ connectionString: services.databaseUrl, max: 2 })
  /** Each part has a process of its own, so that none is affected by another's leftovers. */
  const inProcess = async (work: (bench: Bench) => Promise<boolean>) => {
    const [port = 0] = await freePorts(1)
    const service = await startService(services, port, providerPort)
    try {
      const bench = { baseUrl: `http://127.0.0.1:${port}`, service, pool }
      await runTurns(bench, WARM_UP)
      return await work(bench)
    } finally {
      await service.stop()
    }
  }
  try {
    const met = [
      await inProcess(benchHistory),
      await inProcess((bench) => benchStorage(bench, 'one session')),
      await inProcess((bench) => benchStorage(bench, 'many')),
      await inProcess(benchMemory),
    ]
    return met.every(Boolean)
  } finally {
    await pool.end()
    await provider.stop()
  }
}

const startService = (services: RunningServices, port: number, providerPort: number): Promise<Child> =>
  startChild('./growth-service.ts', {
    env: {
      DATABASE_URL: services.databaseUrl,
      REDIS_URL: services.redisUrl,
      TEMPORAL_ADDRESS: services.temporalAddress,
      PORT: `${port}`,
      LOG_LEVEL: 'warn',
      ...providerEnvironment(providerPort),
    },
  })

async function runTurns({ baseUrl }: Bench, count: number): Promise<void> {
  for (let left = count; left > 0; left -= IN_FLIGHT * TURNS_PER_SESSION) {
    const client = await openClient([baseUrl], IN_FLIGHT, 1)
    await runLanes(Math.min(left, IN_FLIGHT * TURNS_PER_SESSION), IN_FLIGHT, client.turn)
    client.close()
  }
}

/** Times turns alone in sessions of several lengths, which take turns. */
async function benchHistory({ baseUrl, pool }: Bench): Promise<boolean> {
  const rounds: { firstMs: number; wholeMs: number }[][] = []
  for (let round = 0; round < ROUNDS; round++) {
    const sessions: OpenSession[] = []
    for (const messages of MESSAGES) sessions.push(await openLongSession(baseUrl, pool, messages))
    const medians = []
    for (const session of sessions) medians.push(await timeTurns(baseUrl, session))
    rounds.push(medians)
    for (const session of sessions) session.close()
  }
  const of = (index: number, value: 'firstMs' | 'wholeMs') =>
    median(rounds.map((medians) => medians[index]?.[value] ?? Number.NaN))
  const ratioOf = (index: number) =>
    median(rounds.map((medians) => (medians[index]?.firstMs ?? Number.NaN) / (medians[0]?.firstMs ?? Number.NaN)))
  for (const [index, messages] of MESSAGES.entries()) {
    print(
      `${`${messages}`.padStart(5)} messages: first token ${of(index, 'firstMs').toFixed(1)} ms, ` +
        `turn ${of(index, 'wholeMs').toFixed(1)} ms, ${ratioOf(index).toFixed(2)} of the first token at ${MESSAGES[0]}`,
    )
  }
  return goal(
    ratioOf(1) <= MAX_AT_1000,
    `first token at ${MESSAGES[1]} messages, of that at ${MESSAGES[0]}: at most ${MAX_AT_1000}: ${ratioOf(1).toFixed(2)}`,
  )
}

/** Returns the medians of some turns, one after the other. The first one is not counted. */
async function timeTurns(baseUrl: string, session: OpenSession): Promise<{ firstMs: number; wholeMs: number }> {
  await runTurn(baseUrl, session)
  const turns = []
  while (turns.length < TURNS_OF_ROUND) turns.push(await runTurn(baseUrl, session))
  return { firstMs: median(turns.map((turn) => turn.firstMs)), wholeMs: median(turns.map((turn) => turn.wholeMs)) }
}

/** Measures what 500 turns add to the tables and their indexes, in one session or each in its own. */
async function benchStorage({ baseUrl, pool }: Bench, kind: 'one session' | 'many'): Promise<boolean> {
  const perTurn: number[] = []
  const one = kind === 'many' ? undefined : await createSession(baseUrl)
  // The part before the first fills what earlier turns have left empty.
  let before = await measureStorage(pool)
  for (let part = 0; part <= PARTS; part++) {
    for (let turn = 0; turn < TURNS_OF_PART; turn++) {
      const session = one ?? (await createSession(baseUrl))
      await runTurn(baseUrl, session)
      if (session !== one) session.close()
    }
    const after = await measureStorage(pool)
    if (part > 0) perTurn.push((after - before) / TURNS_OF_PART)
    before = after
  }
  one?.close()
  print(`storage a turn, ${kind}, KB: ${perTurn.map((bytes) => (bytes / 1000).toFixed(1)).join(', ')}`)
  const ratio = (perTurn.at(-1) ?? Number.NaN) / (perTurn[0] ?? Number.NaN)
  return goal(ratio <= MAX_STORAGE, `the last hundred, of the first: at most ${MAX_STORAGE}: ${ratio.toFixed(2)}`)
}

/** Returns the bytes of all tables with their indexes, after freeing the places of old versions of rows. */
async function measureStorage(pool: pg.Pool): Promise<number> {
  await pool.query('VACUUM')
  const { rows } = await pool.query<{ bytes: string }>(
    `SELECT sum(pg_total_relation_size(oid)) AS bytes FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`,
  )
  return Number(rows[0]?.bytes)
}

/** Measures the memory of the service's process after each block of turns. The first block fills its caches. */
async function benchMemory(bench: Bench): Promise<boolean> {
  const readings: Memory[] = []
  while (readings.length < BLOCKS) {
    await runTurns(bench, TURNS_OF_BLOCK)
    readings.push(await bench.service.ask<Memory>('memory'))
  }
  const [, second, third] = readings
  const last = readings.at(-1)
  const shown = (of: keyof Memory) => readings.map((memory) => (memory[of] / 1e6).toFixed(0)).join(', ')
  print(`memory after each ${TURNS_OF_BLOCK} turns, MB: reachable ${shown('live')}; resident ${shown('resident')}`)
  const ratioOf = (of: keyof Memory) => (2 * (last?.[of] ?? Number.NaN)) / ((second?.[of] ?? 0) + (third?.[of] ?? 0))
  return [
    goal(
      ratioOf('live') <= MAX_MEMORY,
      `reachable memory after ${BLOCKS * TURNS_OF_BLOCK} turns, of the second and third block: at most ${MAX_MEMORY}: ${ratioOf('live').toFixed(2)}`,
    ),
    goal(
      ratioOf('resident') <= MAX_MEMORY,
      `resident memory, of the same: at most ${MAX_MEMORY}: ${ratioOf('resident').toFixed(2)}`,
    ),
  ].every(Boolean)
}
