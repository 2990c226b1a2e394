import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { DefaultLogger, Runtime } from '@temporalio/worker'
import { warnRarely } from '../lib/warn-rarely.ts'
import { temporalSettings } from '../platform/temporal/connection.ts'
import type { Platform } from '../platform/wiring/build.ts'
import { type Role, run } from '../platform/wiring/run.ts'
import { watchLatePolls } from './late-polls.ts'
import { startWorker } from './worker.ts'

/** Warning about the worker for steps in progress, which intentionally has no workflows. */
const MEANT = 'No workflows registered, not polling for workflow tasks'

/** Code in front of some warnings of the library, and the task that it is about: the rest is the same for all. */
const RUN = /^(\[TMPRL\d+\]) \S+(?= )/

export const workerRole: Role = async ({ deps, temporal, database, metrics }, config, log) => {
  const polls = watchLatePolls()
  // `run` handles the signals, so that the worker stops after the API.
  Runtime.install({
    shutdownSignals: [],
    // Without this, the native half of the library would write to the console.
    telemetryOptions: { logging: { forward: {} }, ...(await temporalMetrics(metrics)) },
    logger: new DefaultLogger('WARN', ({ message, meta }) => {
      polls.read(message, meta?.error)
      if (message !== MEANT) warnRarely(log, { err: undefined, ...meta }, message.replace(RUN, '$1'))
    }),
  })
  temporal.expectWorker()
  temporal.scheduleRetention(deps.retention)
  return startWorker(deps, {
    temporal: temporalSettings(config),
    taskQueue: config.TEMPORAL_TASK_QUEUE,
    database,
    polls,
    onConnection: temporal.useWorkerConnection,
  })
}

/** Has Temporal's library serve its metrics on a free port of this machine, from where `/metrics` takes them in. */
async function temporalMetrics(metrics: Platform['metrics']) {
  if (metrics === undefined) return {}
  const bindAddress = `127.0.0.1:${await freePort()}`
  metrics.include(bindAddress)
  return { metrics: { prometheus: { bindAddress } } }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

if (import.meta.main) await run('worker', [workerRole])
