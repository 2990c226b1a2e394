import path from 'node:path'
import type { Log } from './command.ts'
import { stopRecordedProcess } from './pid-file.ts'
import { type Durability, startPostgres } from './postgres.ts'
import type { Service } from './process.ts'
import { startRedis } from './redis.ts'
import { startTemporal, type TemporalService } from './temporal.ts'

export { freePorts, isPortFree } from './ports.ts'
export type { Service, ServiceOptions } from './process.ts'
export type { Log, TemporalService }
export { startPostgres, startRedis, startTemporal }

export type ServicePorts = {
  postgres: number
  redis: number
  temporal: number
  temporalUi: number
}

export type StartServicesOptions = {
  dataDir: string
  ports: ServicePorts
  /** DATABASE_URL, REDIS_URL and TEMPORAL_ADDRESS given here are used as they are. */
  env: NodeJS.ProcessEnv
  log: Log
  /** Flushing to disk in Postgres; "none" turns it off, which is only for disposable data. */
  durability?: Durability
  /** Called with a sentence when a service ends unexpectedly. */
  onServiceDied?: (sentence: string) => void
}

export type RunningServices = {
  databaseUrl: string
  redisUrl: string
  temporalAddress: string
  temporalUiUrl?: string
  stop(): Promise<void>
}

/** A service to start, unless the environment gives its address; then it is not started or stopped here. */
type Startable<S> = { name: string; given: string | undefined; start(): Promise<S> }

function listServices({ dataDir, ports, env, log, durability }: StartServicesOptions) {
  const place = (name: string, port: number) => ({ dataDir: path.join(dataDir, name), port, log })
  const postgres: Startable<Service> = {
    name: 'Postgres',
    given: env.DATABASE_URL,
    start: () => startPostgres({ ...place('postgres', ports.postgres), durability }),
  }
  const redis: Startable<Service> = {
    name: 'Redis',
    given: env.REDIS_URL,
    start: () => startRedis(place('redis', ports.redis)),
  }
  const temporal: Startable<TemporalService> = {
    name: 'Temporal',
    given: env.TEMPORAL_ADDRESS,
    start: () => startTemporal({ ...place('temporal', ports.temporal), uiPort: ports.temporalUi }),
  }
  return { postgres, redis, temporal }
}

/**
 * Stops the services that an earlier run on this folder left behind when it was killed, so that their ports are free
 * again.
 */
export async function stopLeftovers(dataDir: string): Promise<void> {
  await Promise.all([
    stopRecordedProcess(path.join(dataDir, 'postgres', 'postgres.pid'), 'postgres', 'SIGINT'),
    stopRecordedProcess(path.join(dataDir, 'redis', 'redis.pid'), 'redis', 'SIGTERM'),
    stopRecordedProcess(path.join(dataDir, 'temporal', 'temporal.pid'), 'temporal', 'SIGTERM'),
  ])
}

/**
 * Starts the services that the environment does not give, all at once. When one fails to start, none is left running.
 */
export async function startServices(options: StartServicesOptions): Promise<RunningServices> {
  const { log, onServiceDied } = options
  const started: Service[] = []
  let isStopping = false

  async function startUnlessGiven<S extends Service>({ name, given, start }: Startable<S>): Promise<S | undefined> {
    if (given) {
      log(`${name}: using the one the environment gives`)
      return undefined
    }
    const startedAt = Date.now()
    const service = await start().catch((error) => {
      log(`${name}: failed to start; stopping the others`)
      throw error
    })
    started.push(service)
    log(`${name}: ready after ${((Date.now() - startedAt) / 1000).toFixed(1)} s (log: ${service.logPath})`)
    void service.exited.then((reason) => {
      if (!isStopping) onServiceDied?.(`${name} ended by itself (${reason}). Its log: ${service.logPath}`)
    })
    return service
  }

  async function stop(): Promise<void> {
    isStopping = true
    await Promise.all(started.map((service) => service.stop()))
  }

  const { postgres, redis, temporal } = listServices(options)
  const starting = [startUnlessGiven(postgres), startUnlessGiven(redis), startUnlessGiven(temporal)] as const
  try {
    const [postgresService, redisService, temporalService] = await Promise.all(starting)
    return {
      databaseUrl: postgresService?.url ?? postgres.given ?? '',
      redisUrl: redisService?.url ?? redis.given ?? '',
      temporalAddress: temporalService?.url ?? temporal.given ?? '',
      temporalUiUrl: temporalService?.uiUrl,
      stop,
    }
  } catch (error) {
    await Promise.allSettled(starting)
    await stop()
    throw error
  }
}
