import { NativeConnection, Worker } from '@temporalio/worker'
import type { Deps } from '../domain/deps.ts'
import { failLostExecutions, startLostExecutions, tellEndsOfTurns } from '../domain/schedules/sweep.ts'
import { findLateSchedules, syncSchedules } from '../domain/schedules/sync.ts'
import { sweepDeletedSessions } from '../domain/session-deletion/delete-session.ts'
import { repeatLostNotices } from '../domain/turns/sweep/lost-notices.ts'
import { startLostTurns } from '../domain/turns/sweep/lost-starts.ts'
import { failOrphans } from '../domain/turns/sweep/orphans.ts'
import { sleep } from '../lib/sleep.ts'
import { warnRarely } from '../lib/warn-rarely.ts'
import { createActivities } from './activities.ts'
import { bundleWorkflows } from './bundle.ts'
import { type Heartbeats, startHeartbeats } from './heartbeats.ts'

export type WorkerOptions = {
  address: string
  namespace: string
  taskQueue: string
  /** Path of a prebuilt bundle of the workflows. Without it they are bundled at start, which takes some seconds. */
  workflowBundle?: string | undefined
  /** False: nothing sends heartbeats while the event loop is blocked. Saves half a second where many workers start. */
  heartbeatThread?: boolean
  /** Called with the connection on which the worker polls, undefined when it stops. Turns start eagerly on it. */
  onConnection?: (connection: NativeConnection | undefined) => void
}

export type RunningWorker = { stop(): Promise<void>; stopped: Promise<void> }

const SWEEP_MS = 1000
const RECONCILE_MS = 5000
const DELETE_MS = 5000
const SYNC_MS = 2000
const FIND_LATE_MS = 15_000
const RECONNECT_MS = 1000
const SHUTDOWN_GRACE = '5 seconds'
/**
 * Number of pollers. A machine that vanishes leaves its polls open at Temporal for a minute, and each one swallows a
 * task until that times out. Therefore an idle worker has few of them and a busy one more.
 */
const POLLERS = { type: 'autoscaling', minimum: 1, initial: 1, maximum: 10 } as const

/** Bundle shared by the whole process: a worker that reconnects needs no second one. */
let bundle: ReturnType<typeof bundleWorkflows> | undefined
const bundled = () => {
  bundle ??= bundleWorkflows().catch((error) => {
    bundle = undefined
    throw error
  })
  return bundle
}

/** Runs workflows, activities and sweeps until stopped. Waits for Temporal at start, and reconnects after an outage. */
export function startWorker(deps: Deps, options: WorkerOptions): RunningWorker {
  const stopping = new AbortController()
  const sweeping = sweep(deps, stopping.signal)
  const working = work(deps, options, stopping.signal)
  const stopped = Promise.all([sweeping, working]).then(() => {})
  return {
    stopped,
    stop: async () => {
      stopping.abort()
      await stopped
    },
  }
}

async function work(deps: Deps, options: WorkerOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    let connection: NativeConnection | undefined
    let heartbeats: Heartbeats | undefined
    try {
      connection = await NativeConnection.connect({ address: options.address })
      heartbeats = startHeartbeats(connection, options, deps.log)
      await runWorker(deps, options, connection, heartbeats, signal)
    } catch (error) {
      warnRarely(deps.log, { err: (error as Error).message }, 'worker interrupted; connecting to Temporal again')
      await sleep(RECONNECT_MS, signal)
    } finally {
      await heartbeats?.close()
      await connection?.close().catch(() => {})
    }
  }
}

async function runWorker(
  deps: Deps,
  options: WorkerOptions,
  connection: NativeConnection,
  heartbeats: Heartbeats,
  signal: AbortSignal,
) {
  const worker = await Worker.create({
    connection,
    namespace: options.namespace,
    taskQueue: options.taskQueue,
    activities: createActivities(deps, heartbeats),
    shutdownGraceTime: SHUTDOWN_GRACE,
    // Heartbeats are due every 4 s. The SDK would delay them to 80 % of that, which leaves a busy worker no slack.
    maxHeartbeatThrottleInterval: '1500 milliseconds',
    // Time after which another worker takes over a turn whose own worker has died.
    stickyQueueScheduleToStartTimeout: '1 second',
    workflowTaskPollerBehavior: POLLERS,
    activityTaskPollerBehavior: POLLERS,
    maxConcurrentActivityTaskExecutions: 200,
    maxConcurrentLocalActivityExecutions: 200,
    workflowBundle: options.workflowBundle === undefined ? await bundled() : { codePath: options.workflowBundle },
  })
  const shutdown = () => worker.shutdown()
  signal.addEventListener('abort', shutdown, { once: true })
  try {
    const running = worker.run()
    if (signal.aborted) worker.shutdown()
    options.onConnection?.(connection)
    deps.log.info({ taskQueue: options.taskQueue }, 'worker polls')
    await running
  } finally {
    options.onConnection?.(undefined)
    signal.removeEventListener('abort', shutdown)
  }
}

/** Repeats `work`, each time `everyMs` after it has ended. A failure is logged; the next run makes up for it. */
async function repeat(deps: Deps, everyMs: number, signal: AbortSignal, what: string, work: () => Promise<unknown>) {
  while (!signal.aborted) {
    try {
      await work()
    } catch (error) {
      warnRarely(deps.log, { err: (error as Error).message }, `${what} failed; it will be retried`)
    }
    await sleep(everyMs, signal)
  }
}

/** Runs the sweeps, which complete what was left undone because a process died or Temporal was unavailable. */
function sweep(deps: Deps, signal: AbortSignal): Promise<unknown> {
  const swept = new Map<string, number>()
  const sweptExecutions = new Map<string, number>()
  const late = new Map<string, number>()
  let cursor: string | null = null
  let executionCursor: string | null = null
  return Promise.all([
    repeat(deps, SWEEP_MS, signal, 'starting queued turns', () => startLostTurns(deps, swept)),
    repeat(deps, SWEEP_MS, signal, 'notifying workflows', () => repeatLostNotices(deps)),
    repeat(deps, DELETE_MS, signal, 'deleting the data of deleted sessions', () => sweepDeletedSessions(deps, signal)),
    repeat(deps, SYNC_MS, signal, 'telling Temporal of schedules', () => syncSchedules(deps)),
    repeat(deps, FIND_LATE_MS, signal, 'finding late schedules', () => findLateSchedules(deps, late)),
    repeat(deps, RECONCILE_MS, signal, 'comparing turns with Temporal', async () => {
      cursor = await failOrphans(deps, cursor)
    }),
    repeat(deps, SWEEP_MS, signal, 'starting executions', () => startLostExecutions(deps, sweptExecutions)),
    repeat(deps, SWEEP_MS, signal, 'ending executions', () => tellEndsOfTurns(deps)),
    repeat(deps, RECONCILE_MS, signal, 'comparing executions with Temporal', async () => {
      executionCursor = await failLostExecutions(deps, executionCursor)
    }),
  ])
}
