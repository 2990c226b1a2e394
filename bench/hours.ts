import { readdir, readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { Redis } from 'ioredis'
import pg from 'pg'
import { freePorts } from '../dev/services/index.ts'
import { type Child, startChild } from './child.ts'
import { siteSubject } from './load.ts'
import { goal, print } from './report.ts'
import { SIXTY_FOUR } from './rounds.ts'
import { type Ground, type Site, startSite } from './site.ts'
import { median, percentile, type Turn } from './statistics.ts'
import { createSession, type OpenSession, runTurn } from './turn-client.ts'

const MINUTES = Number(process.env.BENCH_MINUTES ?? 120)
/** Share of the turns a second that the machine can do. */
const SHARE = 0.6
const PACE = { tokens: 20, pauseMs: 50 }
/** Turns of a session, which is then deleted. */
const TURNS_OF_SESSION = 10
const TICK_MS = 20
/** A turn that is due while so many run is late. */
const MAX_IN_FLIGHT = 1000
const MAX_GROWTH = 1.1
/** Growth of connections, clients and descriptors that is noise: pools open and close them. */
const MAX_MORE = 5
const MAX_STORED_GROWTH = 1.2

/** Tables that keep a row of each session that is deleted, on purpose. */
const LEDGERS = "'audit_entries', 'usage_hours'"

/** What is there after a minute. Sizes are in MB; `turns` ended in the minute, with their times in ms. `keptMb`: of ledgers. */
type Minute = {
  minute: number
  turns: number
  late: number
  failed: number
  firstP50: number
  firstP99: number
  serviceMb: number
  serviceFiles: number
  postgresMb: number
  connections: number
  storedMb: number
  keptMb: number
  temporalMb: number
  temporalStoredMb: number
  redisMb: number
  redisClients: number
}

/**
 * Runs turns for two hours, or BENCH_MINUTES, at 60 % of what the machine can, and reads by the minute what may grow: memory,
 * descriptors, connections and stored bytes. Sessions are deleted after ten turns, and deltas after a minute. Prints a table
 * in Markdown and the goals.
 */
export async function benchHours(ground: Ground): Promise<boolean> {
  const [providerPort = 0] = await freePorts(1)
  const provider = await startChild('./provider.ts', { args: [`${providerPort}`] })
  const site = await startSite(ground, 'together', providerPort, undefined, { DELTA_RETENTION_SECS: '60' })
  try {
    const rate = SHARE * (await measureRate(site, provider))
    print(
      `${rate.toFixed(1)} turns a second, which is ${SHARE * 100} % of what the machine can, for ${MINUTES} minutes\n`,
    )
    await provider.ask(PACE)
    const minutes = await runFor(ground, site, rate)
    return judge(minutes)
  } finally {
    await site.stop()
    await provider.stop()
  }
}

/** Measures the turns a second that 64 clients get. The first measurement warms up. */
async function measureRate(site: Site, provider: Child): Promise<number> {
  const subject = siteSubject('service', site, provider)
  await subject.measure({ ...SIXTY_FOUR, count: 512 })
  return (await subject.measure({ ...SIXTY_FOUR, count: 1024 })).perSecond
}

async function runFor(ground: Ground, site: Site, rate: number): Promise<Minute[]> {
  const load = startLoad(site.baseUrl, rate)
  const reader = openReader(ground, site)
  const minutes: Minute[] = []
  const startedAt = performance.now()
  try {
    print(head())
    while (minutes.length < MINUTES) {
      await sleep(startedAt + (minutes.length + 1) * 60_000 - performance.now())
      const minute = { minute: minutes.length + 1, ...load.take(), ...(await reader.read()) }
      minutes.push(minute)
      print(row(minute))
    }
  } finally {
    await load.stop()
    await reader.close()
  }
  return minutes
}

/** Begins turns by the clock, whatever becomes of those before. */
function startLoad(baseUrl: string, rate: number) {
  let turns: Turn[] = []
  let [late, failed, inFlight, begun] = [0, 0, 0, 0]
  const idle: OpenSession[] = []
  const startedAt = performance.now()
  /** Takes a session whose stream the service has not ended meanwhile. */
  const takeOpen = async (): Promise<OpenSession> => {
    for (let session = idle.pop(); session; session = idle.pop()) {
      if (!session.hasEnded) return session
      await remove(baseUrl, session)
    }
    return createSession(baseUrl)
  }
  const one = async () => {
    inFlight++
    try {
      const session = await takeOpen()
      turns.push(await runTurn(baseUrl, session, { onDelta: () => {} }))
      if (session.turns.length < TURNS_OF_SESSION) idle.push(session)
      else await remove(baseUrl, session)
    } catch (error) {
      failed++
      process.stderr.write(`a turn, its session or its deletion failed: ${inspect(error)}\n`)
    } finally {
      inFlight--
    }
  }
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - startedAt) * rate) / 1000)
    for (; begun < due; begun++) {
      if (inFlight < MAX_IN_FLIGHT) void one()
      else late++
    }
  }, TICK_MS)
  return {
    take: () => {
      const first = turns.map(({ firstMs }) => firstMs)
      const taken = { turns: turns.length, late, failed, firstP50: median(first), firstP99: percentile(first, 0.99) }
      turns = []
      late = 0
      failed = 0
      return taken
    },
    stop: async () => {
      clearInterval(timer)
      while (inFlight > 0) await sleep(100)
      for (const session of idle) session.close()
    },
  }
}

async function remove(baseUrl: string, session: OpenSession): Promise<void> {
  session.close()
  const { status } = await fetch(`${baseUrl}/v1/sessions/${session.id}`, { method: 'DELETE' })
  if (status !== 204) throw new Error(`deleting ${session.id}: ${status}`)
}

function openReader({ services, dataDir }: Ground, { processes }: Site) {
  const pool = new pg.Pool({ connectionString: services.databaseUrl, max: 1 })
  const redis = new Redis(services.redisUrl)
  const [service = 0, temporal = 0, postgres = 0] = ['service', 'Temporal', 'Postgres'].map(
    (role) => processes[role]?.[0],
  )
  return {
    read: async () => {
      const { rows } = await pool.query(`SELECT
        sum(pg_total_relation_size(oid)) FILTER (WHERE relname NOT IN (${LEDGERS})) AS stored,
        sum(pg_total_relation_size(oid)) FILTER (WHERE relname IN (${LEDGERS})) AS kept,
        (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()) AS connections
        FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`)
      const [memory, clients] = [await redis.info('memory'), await redis.info('clients')]
      return {
        serviceMb: (await residentOf(service)) / 1e6,
        serviceFiles: (await readdir(`/proc/${service}/fd`)).length,
        postgresMb: (await privateOf(postgres)) / 1e6,
        connections: Number(rows[0].connections),
        storedMb: Number(rows[0].stored) / 1e6,
        keptMb: Number(rows[0].kept) / 1e6,
        temporalMb: (await residentOf(temporal)) / 1e6,
        temporalStoredMb: (await sizeOf(path.join(dataDir, 'temporal'))) / 1e6,
        redisMb: numberIn(memory, 'used_memory') / 1e6,
        redisClients: numberIn(clients, 'connected_clients'),
      }
    },
    close: async () => {
      await pool.end()
      redis.disconnect()
    },
  }
}

const numberIn = (info: string, field: string): number => Number(new RegExp(`^${field}:(\\d+)`, 'm').exec(info)?.[1])

/** Bytes of a line of /proc, which counts in KiB. */
const bytesIn = (text: string, field: string): number =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024

const residentOf = async (pid: number): Promise<number> =>
  bytesIn(await readFile(`/proc/${pid}/status`, 'utf8'), 'VmRSS')

/** Adds up what a process and its children have for themselves: shared buffers would count for each of them. */
async function privateOf(pid: number): Promise<number> {
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ').filter(Boolean)
  const sizes = [`${pid}`, ...children].map(async (id) => {
    const text = await readFile(`/proc/${id}/smaps_rollup`, 'utf8').catch(() => '')
    return bytesIn(text, 'Private_Clean') + bytesIn(text, 'Private_Dirty')
  })
  return (await Promise.all(sizes)).reduce((total, one) => total + one, 0)
}

async function sizeOf(folder: string): Promise<number> {
  const names = await readdir(folder)
  const files = names.filter((name) => name.includes('.db') || name.includes('.sqlite'))
  const sizes = await Promise.all(files.map(async (name) => (await stat(path.join(folder, name))).size))
  return sizes.reduce((total, one) => total + one, 0)
}

const COLUMNS = {
  minute: 'Minute',
  turns: 'Turns',
  late: 'Late',
  failed: 'Failed',
  firstP50: 'First token p50, ms',
  firstP99: 'p99',
  serviceMb: 'Service, MB',
  serviceFiles: 'Descriptors',
  postgresMb: 'Postgres, MB',
  connections: 'Connections',
  storedMb: 'Stored, MB',
  keptMb: 'Ledgers, MB',
  temporalMb: 'Temporal, MB',
  temporalStoredMb: 'Stored, MB',
  redisMb: 'Redis, MB',
  redisClients: 'Clients',
} satisfies Record<keyof Minute, string>
const KEYS = Object.keys(COLUMNS) as (keyof Minute)[]

const head = (): string => `| ${Object.values(COLUMNS).join(' | ')} |\n|${' --- |'.repeat(KEYS.length)}`
const row = (minute: Minute): string =>
  `| ${KEYS.map((key) => (/Mb$/.test(key) ? minute[key].toFixed(1) : minute[key].toFixed(0))).join(' | ')} |`

/** Compares the last quarter with the second: the first one fills caches. */
function judge(minutes: Minute[]): boolean {
  const quarter = Math.max(1, Math.floor(minutes.length / 4))
  const [second, last] = [minutes.slice(quarter, 2 * quarter), minutes.slice(-quarter)]
  const isCounted = (key: keyof Minute) => !key.endsWith('Mb')
  const perTurn = (part: Minute[], key: keyof Minute) =>
    ((part.at(-1)?.[key] ?? 0) - (part[0]?.[key] ?? 0)) / part.slice(1).reduce((total, { turns }) => total + turns, 0)
  const flat = (
    [
      'serviceMb',
      'serviceFiles',
      'postgresMb',
      'connections',
      'storedMb',
      'temporalMb',
      'redisMb',
      'redisClients',
    ] as const
  ).map((key) => {
    const [before, after] = [second, last].map((part) => median(part.map((one) => one[key]))) as [number, number]
    const isFlat = after <= before * MAX_GROWTH || after <= before + (isCounted(key) ? MAX_MORE : 0)
    return goal(isFlat, `${key}, last quarter, of the second: at most ${MAX_GROWTH}: ${(after / before).toFixed(2)}`)
  })
  // Temporal keeps closed workflows for a day, and ledgers are kept for longer.
  const left = (['keptMb', 'temporalStoredMb'] as const).map((key) => {
    const ratio = perTurn(last, key) / perTurn(second, key)
    const limit = `at most ${MAX_STORED_GROWTH}: ${ratio.toFixed(2)}`
    return goal(ratio <= MAX_STORED_GROWTH, `${key} that a turn leaves, last quarter, of the second: ${limit}`)
  })
  const sum = (key: 'failed' | 'late') => minutes.reduce((total, one) => total + one[key], 0)
  return [
    ...flat,
    ...left,
    goal(sum('failed') === 0, `no turn failed: ${sum('failed')}`),
    goal(sum('late') === 0, `no turn was late: ${sum('late')}`),
  ].every(Boolean)
}
