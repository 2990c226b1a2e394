import { NativeConnection, Worker } from '@temporalio/worker'
import type { Deps } from '../domain/deps.ts'
import { wakeDueLanes } from '../domain/organization-events/webhooks/lanes.ts'
import { findLateSchedules, syncSchedules } from '../domain/schedules/clock/sync.ts'
import { failLostExecutions, notifyEndedTurns, startLostExecutions } from '../domain/schedules/executions/sweep.ts'
import { admitWaitingTurns } from '../domain/turns/run/turn-admission.ts'
import { beginWaitingSteps } from '../domain/turns/run/waiting-steps.ts'
import { cancelLeftChildren } from '../domain/turns/sweep/left-children.ts'
import { releaseDeadProcesses, releaseLostActivities } from '../domain/turns/sweep/lost-activities.ts'
import { repeatLostNotices } from '../domain/turns/sweep/lost-notices.ts'
import { startLostTurns } from '../domain/turns/sweep/lost-starts.ts'
import { failOrphans, startLostEarlyTurns } from '../domain/turns/sweep/orphans.ts'
import { sweepDeletedOrganizations } from '../domain/upkeep/organization-deletion.ts'
import { sweepDeletedSessions } from '../domain/upkeep/session-deletion/delete-session.ts'
import { sleep } from '../lib/sleep.ts'
import { warnRarely } from '../lib/warn-rarely.ts'
import { workerIdentity } from '../lib/worker-identity.ts'
import type { PostgresSettings } from '../platform/postgres/connection.ts'
import { type TemporalSettings, temporalOptions } from '../platform/temporal/connection.ts'
import { version } from '../platform/version.ts'
import { BEGINS_STEPS } from '../workflows/messages.ts'
import { createActivities } from './activities.ts'
import { bundleWorkflows, PAYLOAD_CONVERTER } from './bundle.ts'
import { CALL_PLACES } from './calls.ts'
import { type Heartbeats, startHeartbeats } from './heartbeats.ts'
import { holdLease } from './lease.ts'

export type WorkerOptions = {
  temporal: TemporalSettings
  taskQueue: string
  /** The way to the record, in which a thread renews the lease of a process that is too busy. */
  database: PostgresSettings
  /** Build id of the workflows. Default: this release's, see `BEGINS_STEPS`. */
  buildId?: string
  /** False: nothing sends heartbeats while the event loop is blocked. Saves half a second where many workers start. */
  heartbeatThread?: boolean
  /** Called with the connection on which the worker polls, undefined when it stops. Turns start eagerly on it. */
  onConnection?: (connection: NativeConnection | undefined) => void
}

export type RunningWorker = { stop(): Promise<void>; stopped: Promise<void> }

const SWEEP_MS = 1000
/** Interval that is also the delay of a delivery, on average half of it. */
const WAKE_MS = 500
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
      connection = await NativeConnection.connect(temporalOptions(options.temporal))
      const { temporal, database, heartbeatThread } = options
      const place = { temporal, database, ...placeOf(deps) }
      heartbeats = startHeartbeats(connection, place, deps.log, heartbeatThread)
      await runWorkers(deps, options, connection, heartbeats, signal)
    } catch (error) {
      warnRarely(deps.log, { err: (error as Error).message }, 'worker interrupted; connecting to Temporal again')
      await sleep(RECONNECT_MS, signal)
    } finally {
      await heartbeats?.close()
      await connection?.close().catch(() => {})
    }
  }
}

const placeOf = ({ attempts: { process } }: Deps) => ({ process, identity: workerIdentity(process) })

/**
 * Runs the process's two workers until stopped: one for everything, and one for the rest of steps that have begun in this
 * process.
 */
async function runWorkers(
  deps: Deps,
  options: WorkerOptions,
  connection: NativeConnection,
  heartbeats: Heartbeats,
  signal: AbortSignal,
) {
  const queueOf = (process: number) => `${options.taskQueue}/${process.toString(36)}`
  const activities = createActivities(deps, heartbeats, queueOf)
  const { identity } = placeOf(deps)
  const workers = await Promise.all([
    createWorker(options, connection, activities, { identity, ...deps.limits }),
    Worker.create({
      ...COMMON,
      connection,
      identity,
      namespace: options.temporal.TEMPORAL_NAMESPACE,
      taskQueue: queueOf(deps.attempts.process),
      // Its activities only wait for attempts, thousands of them; the lease tells when the process has died.
      maxHeartbeatThrottleInterval: '4 minutes',
      activities: { reason: activities.reason },
      // They come together when many turns have begun together, and have little time to get here.
      activityTaskPollerBehavior: { type: 'simple-maximum', maximum: 10 },
      maxConcurrentActivityTaskExecutions: deps.limits.maxModelCalls,
    }),
  ])
  const stopping = new AbortController()
  const shutdown = () => {
    stopping.abort()
    deps.attempts.close()
    for (const worker of workers) worker.shutdown()
  }
  signal.addEventListener('abort', shutdown, { once: true })
  let lease: Promise<void> | undefined
  try {
    const running = workers.map((worker) => worker.run())
    options.onConnection?.(connection)
    lease = holdLease(deps, connection, stopping.signal)
    if (signal.aborted) shutdown()
    deps.log.info({ taskQueue: options.taskQueue }, 'worker polls')
    await endTogether(workers, running)
  } finally {
    stopping.abort()
    deps.attempts.setPolling(false)
    options.onConnection?.(undefined)
    signal.removeEventListener('abort', shutdown)
    await lease
  }
}

/** Waits until all have ended, and shuts the others down when one fails. Rejects with its error. */
async function endTogether(workers: Worker[], running: Promise<void>[]): Promise<void> {
  const shutdown = () => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown()
  }
  for (const one of running) one.catch(shutdown)
  const ended = await Promise.allSettled(running)
  const failed = ended.find((end) => end.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

/** Settings of both workers. */
const COMMON = {
  shutdownGraceTime: SHUTDOWN_GRACE,
  activityTaskPollerBehavior: POLLERS,
} as const

/** Number of workflow tasks at once and of workflows kept in memory, which must be equal. */
const WORKFLOW_TASKS = 500

const createWorker = async (
  { temporal: { TEMPORAL_NAMESPACE: namespace }, taskQueue, buildId = `${BEGINS_STEPS}${version}` }: WorkerOptions,
  connection: NativeConnection,
  activities: ReturnType<typeof createActivities>,
  { identity, maxModelCalls }: { identity: string; maxModelCalls: number },
): Promise<Worker> =>
  Worker.create({
    ...COMMON,
    connection,
    identity,
    namespace,
    taskQueue,
    activities,
    dataConverter: { payloadConverterPath: PAYLOAD_CONVERTER },
    buildId,
    // Heartbeats are due every 10 s. The SDK would delay them to 80 % of that, which leaves a busy worker no slack.
    maxHeartbeatThrottleInterval: '4 seconds',
    // Time after which another worker takes over a turn whose own worker has died.
    stickyQueueScheduleToStartTimeout: '1 second',
    workflowTaskPollerBehavior: POLLERS,
    // An activity that waits costs little; what it takes is limited where it is taken, and by owner (worker/calls.ts).
    maxConcurrentActivityTaskExecutions: maxModelCalls + CALL_PLACES,
    // A workflow task keeps its slot while its local activities run. Without a free slot no turn starts eagerly.
    maxConcurrentWorkflowTaskExecutions: WORKFLOW_TASKS,
    maxConcurrentLocalActivityExecutions: WORKFLOW_TASKS,
    // A cached workflow takes some 100 kB. Others are replayed from their short histories.
    maxCachedWorkflows: WORKFLOW_TASKS,
    workflowBundle: await bundled(),
  })

/** Repeats `work`, each time `everyMs` after it has ended. A failure is logged; the next run makes up for it. */
async function repeat(deps: Deps, everyMs: number, signal: AbortSignal, what: string, work: () => Promise<number>) {
  while (!signal.aborted) {
    try {
      const found = await work()
      deps.metrics?.swept(what, found)
    } catch (error) {
      deps.metrics?.sweepFailed(what)
      warnRarely(deps.log, { err: (error as Error).message }, `${what} failed; it will be retried`)
    }
    await sleep(everyMs, signal)
  }
}

/** Runs the sweeps, which complete what was left undone because a process died or Temporal was unavailable. */
function sweep(deps: Deps, signal: AbortSignal): Promise<unknown> {
  const swept = new Map<string, number>()
  const noticesUnderWay = new Set<string>()
  const compared = new Map<string, number>()
  const sweptExecutions = new Map<string, number>()
  const late = new Map<string, number>()
  let cursor: string | null = null
  let executionCursor: string | null = null
  return Promise.all([
    repeat(deps, SWEEP_MS, signal, 'starting queued turns', () => startLostTurns(deps, swept)),
    repeat(deps, SWEEP_MS, signal, 'cancelling turns of ended callers', () => cancelLeftChildren(deps)),
    repeat(deps, SWEEP_MS, signal, 'comparing new turns with Temporal', () => startLostEarlyTurns(deps, compared)),
    repeat(deps, SWEEP_MS, signal, 'taking over from dead processes', () => releaseDeadProcesses(deps)),
    repeat(deps, SWEEP_MS, signal, 'looking for lost activities', () => releaseLostActivities(deps)),
    repeat(deps, SWEEP_MS, signal, 'beginning steps that wait for a place', () => beginWaitingSteps(deps)),
    repeat(deps, SWEEP_MS, signal, 'admitting turns that wait for a place', () => admitWaitingTurns(deps)),
    repeat(deps, SWEEP_MS, signal, 'notifying workflows', () => repeatLostNotices(deps, noticesUnderWay)),
    repeat(deps, DELETE_MS, signal, 'deleting the data of deleted sessions', () => sweepDeletedSessions(deps, signal)),
    repeat(deps, DELETE_MS, signal, 'removing deleted organizations', () => sweepDeletedOrganizations(deps, signal)),
    repeat(deps, SYNC_MS, signal, 'telling Temporal of schedules', () => syncSchedules(deps)),
    repeat(deps, FIND_LATE_MS, signal, 'finding late schedules', () => findLateSchedules(deps, late)),
    repeat(deps, RECONCILE_MS, signal, 'comparing turns with Temporal', async () => {
      const page = await failOrphans(deps, cursor)
      cursor = page.cursor
      return page.found
    }),
    repeat(deps, SWEEP_MS, signal, 'starting executions', () => startLostExecutions(deps, sweptExecutions)),
    repeat(deps, WAKE_MS, signal, 'starting deliveries', () => wakeDueLanes(deps)),
    repeat(deps, SWEEP_MS, signal, 'ending executions', () => notifyEndedTurns(deps)),
    repeat(deps, RECONCILE_MS, signal, 'comparing executions with Temporal', async () => {
      const page = await failLostExecutions(deps, executionCursor)
      executionCursor = page.cursor
      return page.found
    }),
  ])
}
