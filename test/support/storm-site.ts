import { readFile } from 'node:fs/promises'
import { freePorts, type Service } from '../../dev/services/index.ts'
import { sleep } from '../../lib/sleep.ts'
import { type PrivateService, privatePostgres, privateRedis, privateTemporal } from './private-services.ts'
import { type Joined, killProcesses, type ServiceProcess, startApiProcess, startLabWorkerProcess } from './process.ts'
import { startProxy } from './proxy.ts'

/** Something that a test kills or freezes, and that comes back at the same address. */
export type Victim = {
  name: string
  /** Ends it like a power cut, and starts it again after a pause. Resolves when it works again. */
  kill(pauseMs: number): Promise<void>
  /** Stops it from running for a while, without ending it. */
  freeze(forMs: number): Promise<void>
}

/** The whole service in processes of its own: an API with a worker, an API, a worker, and their servers. */
export type StormSite = {
  victims: Victim[]
  /** Addresses of the APIs. */
  urls: string[]
  /** Addresses of the APIs behind proxies that cut each connection in the middle of whatever it carries. */
  brittleUrls: string[]
  close(): Promise<void>
}

const MAX_STARTS = 20

/** `lifetime` returns the number of bytes after which a connection through a brittle address is cut. */
export async function startStormSite(
  lifetime: () => number,
  settings: Record<string, string> = {},
): Promise<StormSite> {
  const places = [privatePostgres(), privateRedis(), privateTemporal()] as const
  const [postgres, redis, temporal] = await Promise.all(places.map(startServer))
  if (!postgres || !redis || !temporal) throw new Error('a server is missing')
  const name = `storm-${process.pid}-${Date.now()}`
  const environment = {
    DATABASE_URL: postgres.url,
    REDIS_URL: redis.url,
    TEMPORAL_ADDRESS: await places[2].address(),
    REDIS_PREFIX: name,
    TEMPORAL_TASK_QUEUE: name,
    SSE_HEARTBEAT_INTERVAL_SECS: '2',
    SSE_REALTIME_CYCLE_SECS: '20',
    ...settings,
  }
  const ports = await freePorts(2)
  const api = (entryPoint: 'api/main.ts' | 'main.ts', port = 0) =>
    startProcess(entryPoint === 'main.ts' ? 'API and worker' : 'API', { environment }, (joined) =>
      startApiProcess(joined, entryPoint, { PORT: String(port) }),
    )
  const processes = [
    await api('api/main.ts', ports[0]),
    await api('main.ts', ports[1]),
    await startProcess('worker', { environment }, startLabWorkerProcess),
  ]
  const proxies = await Promise.all(ports.map((port) => startProxy(`127.0.0.1:${port}`, lifetime)))
  return {
    victims: [
      ...processes,
      { name: 'Postgres', ...postgres },
      { name: 'Redis', ...redis },
      { name: 'Temporal', ...temporal },
    ],
    urls: ports.map((port) => `http://127.0.0.1:${port}`),
    brittleUrls: proxies.map(({ address }) => `http://${address}`),
    close: async () => {
      await killProcesses()
      await Promise.all([
        ...proxies.map((proxy) => proxy.close()),
        ...[postgres, redis, temporal].map((s) => s.close()),
      ])
    },
  }
}

async function startProcess(
  name: string,
  joined: Joined,
  start: (joined: Joined) => Promise<ServiceProcess>,
): Promise<Victim> {
  let running = await start(joined)
  return {
    name,
    kill: async (pauseMs) => {
      await running.kill()
      await sleep(pauseMs)
      running = await start(joined)
    },
    freeze: async (forMs) => {
      running.freeze()
      await sleep(forMs)
      running.thaw()
    },
  }
}

type Server = Omit<Victim, 'name'> & { url: string; close(): Promise<void> }

async function startServer(place: PrivateService<Service>): Promise<Server> {
  let running = await place.start()
  return {
    url: running.url,
    kill: async (pauseMs) => {
      const family = await familyOf(running.pid)
      await running.kill()
      signal(family, 'SIGKILL')
      await sleep(pauseMs)
      running = await startAgain(place)
    },
    freeze: async (forMs) => {
      const family = await familyOf(running.pid)
      signal(family, 'SIGSTOP')
      await sleep(forMs)
      signal(family, 'SIGCONT')
    },
    close: async () => {
      await running.stop()
      await place.remove()
    },
  }
}

/** Starts a server whose predecessor may still be letting go of its port and memory. */
export async function startAgain<S>(place: PrivateService<S>): Promise<S> {
  for (let start = 1; ; start++) {
    try {
      return await place.start()
    } catch (error) {
      if (start === MAX_STARTS) throw error
      await sleep(250)
    }
  }
}

/** Returns a process and its descendants. Postgres has a process for each connection, outside its process group. */
export async function familyOf(pid: number): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  const families = await Promise.all(children.split(' ').filter(Boolean).map(Number).map(familyOf))
  return [pid, ...families.flat()]
}

export function signal(pids: number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name)
    } catch {
      // It has ended by itself.
    }
  }
}
