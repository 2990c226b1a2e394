import { DefaultLogger, Runtime } from '@temporalio/worker'
import { warnRarely } from '../lib/warn-rarely.ts'
import { type Role, run } from '../platform/wiring/run.ts'
import { startWorker } from './worker.ts'

export const workerRole: Role = async ({ deps, temporal }, config, log) => {
  // `run` handles the signals, so that the worker stops after the API.
  Runtime.install({
    shutdownSignals: [],
    // Without this, the native half of the library would write to the console.
    telemetryOptions: { logging: { forward: {} } },
    logger: new DefaultLogger('WARN', (entry) => warnRarely(log, { err: undefined, ...entry.meta }, entry.message)),
  })
  temporal.expectWorker()
  temporal.scheduleRetention(deps.retention)
  return startWorker(deps, {
    address: config.TEMPORAL_ADDRESS,
    namespace: config.TEMPORAL_NAMESPACE,
    taskQueue: config.TEMPORAL_TASK_QUEUE,
    workflowBundle: config.WORKFLOW_BUNDLE,
    onConnection: temporal.useWorkerConnection,
  })
}

if (import.meta.main) await run('worker', [workerRole])
