import { DefaultLogger, Runtime } from '@temporalio/worker'
import { warnRarely } from '../lib/warn-rarely.ts'
import { temporalSettings } from '../platform/temporal/connection.ts'
import { type Role, run } from '../platform/wiring/run.ts'
import { startWorker } from './worker.ts'

/** Warning about the worker for steps in progress, which intentionally has no workflows. */
const MEANT = 'No workflows registered, not polling for workflow tasks'

/** Code in front of some warnings of the library, and the task that it is about: the rest is the same for all. */
const RUN = /^(\[TMPRL\d+\]) \S+(?= )/

export const workerRole: Role = async ({ deps, temporal, database }, config, log) => {
  // `run` handles the signals, so that the worker stops after the API.
  Runtime.install({
    shutdownSignals: [],
    // Without this, the native half of the library would write to the console.
    telemetryOptions: { logging: { forward: {} } },
    logger: new DefaultLogger('WARN', ({ message, meta }) => {
      if (message !== MEANT) warnRarely(log, { err: undefined, ...meta }, message.replace(RUN, '$1'))
    }),
  })
  temporal.expectWorker()
  temporal.scheduleRetention(deps.retention)
  return startWorker(deps, {
    temporal: temporalSettings(config),
    taskQueue: config.TEMPORAL_TASK_QUEUE,
    database,
    onConnection: temporal.useWorkerConnection,
  })
}

if (import.meta.main) await run('worker', [workerRole])
