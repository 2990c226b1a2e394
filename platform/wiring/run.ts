import type { Logger } from 'pino'
import { type Config, ConfigError, readConfig } from '../config.ts'
import { createLog } from '../log.ts'
import { buildPlatform, type Platform } from './build.ts'

/** A part of the service that one process runs. `stop` finishes work in progress, within its own time limit. */
export type Role = (platform: Platform, config: Config, log: Logger) => Promise<{ stop(): Promise<void> }>

const FORCED_EXIT_MS = 20_000

/** Runs roles in this process until SIGINT or SIGTERM, then stops them in reverse order. */
export async function run(name: string, roles: Role[]): Promise<void> {
  const config = await orExit(async () => readConfig())
  const log = createLog(config.LOG_LEVEL, name)
  const stopSignal = nextStopSignal()
  void stopSignal.then(() => setTimeout(() => process.exit(1), FORCED_EXIT_MS).unref())
  const platform = await orExit(() => buildUnlessStopped(config, log, stopSignal))
  if (platform === undefined) process.exit(0)
  let hasStarted = false
  const ops = await orExit(() => startOps(config, platform, () => hasStarted))
  const running: Awaited<ReturnType<Role>>[] = []
  for (const role of roles) running.unshift(await role(platform, config, log))
  hasStarted = true

  log.info({ signal: await stopSignal }, 'stopping')
  for (const role of running) await role.stop()
  await platform.close()
  ops?.close()
  log.info('stopped')
  process.exit(0)
}

async function startOps(
  { METRICS_PORT: port, METRICS_HOST: host }: Config,
  platform: Platform,
  hasStarted: () => boolean,
) {
  const { metrics, readiness } = platform
  if (port === undefined || metrics === undefined) return undefined
  const { startOpsServer } = await import('./ops-server.ts')
  return startOpsServer({ host, port, readiness, hasStarted, readMetrics: metrics.read })
}

/** Builds the platform, which waits for Postgres. Undefined when the process is stopped meanwhile. */
async function buildUnlessStopped(
  config: Config,
  log: Logger,
  stopSignal: Promise<string>,
): Promise<Platform | undefined> {
  const stopping = new AbortController()
  void stopSignal.then(() => stopping.abort())
  try {
    return await buildPlatform(config, log, stopping.signal)
  } catch (error) {
    if (stopping.signal.aborted) return undefined
    throw error
  }
}

/** Listens from the beginning, so that a signal during the start takes effect, if Postgres is there, after it. */
const nextStopSignal = (): Promise<string> =>
  new Promise((resolve) => {
    process.on('SIGINT', resolve)
    process.on('SIGTERM', resolve)
  })

/** Ends the process with the sentence of a ConfigError. */
async function orExit<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`The service cannot start with this environment:\n${error.message}\n`)
    process.exit(1)
  }
}
