import { type ApiOptions, type RunningApi, startApi } from '../../api/server.ts'
import type { Retention } from '../../domain/deps.ts'
import type { Capability } from '../../domain/tools/capabilities/capability.ts'
import { type Config, callerLimits, consoleOptions, readConfig } from '../../platform/config.ts'
import { createLog } from '../../platform/log.ts'
import { temporalSettings } from '../../platform/temporal/connection.ts'
import { buildPlatform, type Platform } from '../../platform/wiring/build.ts'
import type { RunningWorker } from '../../worker/worker.ts'
import { cloneDatabase } from './database.ts'
import { andPrint, createLogCheck, type LogCheck } from './log-check.ts'
import { closeRuntime, openRuntime } from './native-runtime.ts'
import { secretsOf } from './secrets.ts'
import { withClient } from './temporal.ts'

export type TestService = {
  url: string
  config: Config
  platform: Platform
  api: RunningApi
  /** Starts a second API with its own connections on the same record. */
  startPeer(): Promise<{ url: string; api: RunningApi; platform: Platform }>
  /** Starts a worker in this process, of another release if `buildId` is given. */
  startWorker(buildId?: string): Promise<RunningWorker>
  /** Environment for a child process that joins this service. */
  environment: Record<string, string>
  /** Check of everything logged in this process. */
  logCheck: LogCheck
  /** Stops everything. Throws if a secret was logged. */
  stop(): Promise<void>
}

export type TestOptions = {
  environment?: Record<string, string>
  /** Runs a worker in this process. Defaults to true. */
  worker?: boolean
  /** Has a thread send heartbeats while the event loop is blocked. Only worker processes have one without it. */
  heartbeatThread?: boolean
  sse?: Partial<ApiOptions['sse']>
  /** Capabilities added to the service's own, in this process only. */
  capabilities?: Capability[]
  /** Makes workers in this process schedule retention, as worker processes always do. */
  retention?: Pick<Retention, 'deltasMs'>
}

let number = 0

/** Starts the whole service in this process, with its own database, Redis prefix and task queue. */
export async function startService(options: TestOptions = {}): Promise<TestService> {
  const database = await cloneDatabase()
  const name = `test-${process.pid}-${Date.now()}-${number++}`
  const environment = {
    DATABASE_URL: database.url,
    DATABASE_POOL_SIZE: '8',
    REDIS_PREFIX: name,
    TEMPORAL_TASK_QUEUE: name,
    LOG_LEVEL: 'debug',
    ...(options.retention && { DELTA_RETENTION_SECS: String(options.retention.deltasMs / 1000) }),
    ...options.environment,
  }
  const config = readConfig({ ...process.env, ...environment })
  const logCheck = createLogCheck(secretsOf(config))
  const log = createLog(config.LOG_LEVEL, name, andPrint(logCheck, process.env.TEST_LOG_LEVEL))
  const stops: (() => Promise<void>)[] = [database.drop]
  if (options.retention) stops.push(() => deleteSchedule(config))
  const build = async () => {
    const platform = await buildPlatform(config, log)
    platform.deps.capabilities = [...platform.deps.capabilities, ...(options.capabilities ?? [])]
    const api = await startApi(platform.deps, apiOptions(config, platform, options))
    stops.push(platform.close, api.close)
    return { platform, api, url: `http://127.0.0.1:${api.port}` }
  }
  const main = await build()
  const runWorker = async (buildId?: string) => {
    // Loaded only when needed, because it brings its own native runtime.
    const { startWorker } = await import('../../worker/worker.ts')
    await openRuntime()
    stops.unshift(closeRuntime)
    if (options.retention) main.platform.temporal.scheduleRetention(options.retention)
    const worker = startWorker(main.platform.deps, {
      temporal: temporalSettings(config),
      taskQueue: config.TEMPORAL_TASK_QUEUE,
      database: main.platform.database,
      heartbeatThread: options.heartbeatThread ?? false,
      ...(buildId !== undefined && { buildId }),
      onConnection: main.platform.temporal.useWorkerConnection,
    })
    stops.push(worker.stop)
    return worker
  }
  if (options.worker !== false) await runWorker()
  return {
    ...main,
    config,
    environment,
    logCheck,
    startPeer: build,
    startWorker: runWorker,
    stop: async () => {
      for (const stop of stops.reverse()) await stop()
      logCheck.expectNoSecrets()
    },
  }
}

/** Runs `check` with a service of its own. */
export async function withService(options: TestOptions, check: (service: TestService) => Promise<void>): Promise<void> {
  const service = await startService(options)
  try {
    await check(service)
  } finally {
    await service.stop()
  }
}

/** Deletes the retention schedule, which would otherwise start workflows as long as Temporal runs. */
const deleteSchedule = (config: Config): Promise<void> =>
  withClient({ config }, (client) => client.schedule.getHandle(`${config.TEMPORAL_TASK_QUEUE}-retention`).delete())

const apiOptions = (config: Config, platform: Platform, options: TestOptions): ApiOptions => ({
  host: '127.0.0.1',
  port: 0,
  version: 'test',
  apiPrefix: config.API_PREFIX,
  corsOrigins: config.CORS_ALLOWED_ORIGINS,
  trustedProxies: config.TRUSTED_PROXIES,
  readiness: platform.readiness,
  faces: config.FACES,
  console: consoleOptions(config),
  logsOrganization: config.LOG_ORGANIZATION,
  callerLimits: callerLimits(config),
  sse: {
    cycleMs: 300_000,
    monitoringCycleMs: 600_000,
    heartbeatMs: 30_000,
    maxStreamsPerOrganization: 1000,
    ...options.sse,
  },
  checkAnswers: true,
})
