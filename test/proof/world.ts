import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { applyMigrations } from '../../platform/postgres/migrate.ts'
import { type Controls, createControls } from './controls.ts'
import type { Edit } from './edits.ts'
import { createEngine, type Engine, type Happened } from './engine.ts'
import type { PlannedFault } from './faults.ts'
import { preparePlants } from './plants.ts'
import { startRecorder } from './recorder.ts'
import { runSql, type Servers, startServers } from './servers.ts'
import { type Network, type Role, type Site, type Slot, startSite } from './site.ts'

export type { Happened } from './engine.ts'
export type { FaultKind, PlannedFault } from './faults.ts'
export type { PointName } from './points.ts'

/** The whole service in processes of its own, in which faults happen at planned points. */
export type World = {
  /** Addresses of the two API processes. They stay the same when a process is started again. */
  urls: string[]
  /** Environment of the processes. */
  environment: Record<string, string>
  /** Plans the faults of a history, and forgets the faults of the history before. */
  begin(plan: PlannedFault[]): Promise<void>
  /** Ends all faults. Resolves when every address is served by a process that has all it needs. */
  heal(): Promise<void>
  /** Faults that took place since `begin`, in order. */
  happened(): Happened[]
  /** Whether `full-disk` happens to Postgres, which takes the right to mount. It happens to Redis anyway. */
  canFillDisk: boolean
  /**
   * Time since which an API, a worker and all servers have been there, in ms since the epoch; Infinity while one is missing.
   * It begins anew when a worker is lost: each loss takes time to be noticed.
   */
  servedSince(): number
  /** Whether a process, or what it is connected to, may come back, and it goes on with what it was doing. */
  isAnyAway(): boolean
  /** Tells how servers, processes and turns are and were, with the last complaints, for a failure that does not come again. */
  describe(): string
  close(): Promise<void>
}

export type WorldOptions = { settings?: Record<string, string>; plants?: Edit[] }

/** Offsets of the clocks of the slots, in ms: processes do not agree about the time. */
const CLOCKS = [0, 90_000, -150_000, 45_000]

/** Starts a world: servers, an API, an API with a worker, and a spare of each. */
export async function startWorld({ settings = {}, plants = [] }: WorldOptions = {}): Promise<World> {
  const folder = mkdtempSync(path.join(tmpdir(), 'proof-'))
  const planted = preparePlants(plants)
  const file = (name: string) => path.join(folder, name)
  writeFileSync(file('plants'), JSON.stringify(planted.edits))
  const controls = createControls(file('controls'))
  for (const [slot, offset] of CLOCKS.entries()) controls.setClock(slot, offset)
  const servers = await startServers()
  const close = async () => {
    try {
      await servers.close()
    } finally {
      controls.close()
      rmSync(folder, { recursive: true, force: true })
    }
  }
  try {
    await applyMigrations(servers.postgres.url)
    if (planted.sql.length > 0) await runSql(servers.postgres.url, planted.sql)
    const environment = { ...environmentOf(servers, path.basename(folder)), ...settings }
    const files = { plantsFile: file('plants'), controlsFile: file('controls') }
    return await openWorld(servers, controls, { environment, files, close })
  } catch (error) {
    await close()
    throw error
  }
}

const NETWORK = { postgres: 'DATABASE_URL', redis: 'REDIS_URL', temporal: 'TEMPORAL_ADDRESS' } as const

function environmentOf({ postgres, redis, temporal }: Servers, name: string): Record<string, string> {
  return {
    DATABASE_URL: postgres.url,
    REDIS_URL: redis.url,
    TEMPORAL_ADDRESS: temporal.url,
    REDIS_PREFIX: name,
    TEMPORAL_TASK_QUEUE: name,
    DATABASE_POOL_SIZE: '8',
  }
}

type Opened = {
  environment: Record<string, string>
  files: { plantsFile: string; controlsFile: string }
  close(): Promise<void>
}

async function openWorld(servers: Servers, controls: Controls, { environment, files, close }: Opened): Promise<World> {
  const engine = createEngine(controls)
  const site = await startSite({
    ...files,
    environment,
    targets: {
      postgres: hostOf(servers.postgres.url),
      redis: hostOf(servers.redis.url),
      temporal: servers.temporal.url,
    },
    reach: (network) => reach(servers, network),
    onPoint: (slot, point) => engine.onPoint(slot, point),
  })
  engine.open({ site, servers, controls, clocks: CLOCKS })
  const recorder = startRecorder(servers.postgres.url, servers.temporal.url)
  return {
    urls: site.roles.map(({ url }) => url),
    environment,
    begin: async (plan) => {
      recorder.begin()
      engine.plan(plan)
    },
    heal: async () => {
      await engine.end()
      await Promise.all([servers.postgres.start(), servers.redis.start(), servers.temporal.start()])
      for (const role of site.roles) site.bringBack(role)
      await site.ready()
    },
    happened: engine.happened,
    canFillDisk: servers.canFillDisk,
    servedSince: () => (isServed(site, servers, engine) ? lastLoss(engine.happened()) : Number.POSITIVE_INFINITY),
    isAnyAway: () => engine.happened().some(({ kind, until }) => until === undefined && !FINAL.includes(kind)),
    describe: () => [describe(site, servers), ...recorder.lines()].join('\n'),
    close: async () => {
      try {
        await engine.end()
      } finally {
        await recorder.close()
        await site.close().finally(close)
      }
    },
  }
}

const MAX_COMPLAINTS = 10
/** Faults after which nothing comes back that could do something twice. */
const FINAL = ['kill', 'clock', 'redis-flushed']

function describe({ roles }: Site, { postgres, redis, temporal }: Servers): string {
  const up = Object.entries({ postgres, redis, temporal }).map(([name, server]) => `${name}: ${server.isUp()}`)
  const slots = roles.flatMap((role) => role.slots)
  const states = slots.flatMap(({ number, role, state, isFrozen, cuts, lines }) => [
    `${number}, ${role.name}: ${state}, frozen: ${isFrozen}, cut off: ${[...cuts]}`,
    ...lines.filter((line) => /"level":"(warn|error|fatal)"/.test(line)).slice(-MAX_COMPLAINTS),
  ])
  return [`up: ${up.join(', ')}`, ...states].join('\n')
}

/**
 * Whether a process listens, a worker polls, and each of them has its servers. False while a worker has lost Temporal: the
 * others have to wait for the tools that it runs.
 */
function isServed({ roles }: Site, { postgres, redis, temporal }: Servers, engine: Engine): boolean {
  if (![postgres, redis, temporal].every((server) => server.isUp()) || engine.isInForce('full-disk')) return false
  const works = ({ process, isFrozen, cuts }: Slot) => process !== undefined && !isFrozen && cuts.size === 0
  const listens = (slot: Slot) => slot.state === 'serving' && works(slot)
  const polls = (slot: Slot) => slot.state !== 'starting' && slot.role.entryPoint === 'main.ts' && works(slot)
  const slots = roles.flatMap((role) => role.slots)
  if (slots.some(({ role, cuts }) => role.entryPoint === 'main.ts' && cuts.has('temporal'))) return false
  return slots.some(listens) && slots.some(polls)
}

const WORKS: Role['name'] = 'API and worker'
const LOSES = /^(kill|freeze|cut|mute)/

/** Time at which a worker was last killed, frozen or cut off. */
const lastLoss = (happened: Happened[]): number =>
  Math.max(0, ...happened.filter(({ kind, process }) => LOSES.test(kind) && process === WORKS).map(({ from }) => from))

const hostOf = (url: string): string => new URL(url).host

function reach(servers: Servers, network: Network): Record<string, string> {
  const through = (name: 'postgres' | 'redis') => {
    const url = new URL(servers[name].url)
    url.host = network[name].address
    return url.href
  }
  return {
    [NETWORK.postgres]: through('postgres'),
    [NETWORK.redis]: through('redis'),
    [NETWORK.temporal]: network.temporal.address,
  }
}
