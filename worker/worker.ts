import { NativeConnection, Worker } from '@temporalio/worker'
import type { Deps } from '../domain/deps.ts'
import { wakeDueLanes } from '../domain/organization-events/webhooks/lanes.ts'
import { findLateSchedules, syncSchedules } from '../domain/schedules/clock/sync.ts'
import { failLostExecutions, notifyEndedTurns, startLostExecutions } from '../domain/schedules/executions/sweep.ts'
import { admitWaitingTurns } from '../domain/turns/run/turn-admission.ts'
import { beginWaitingSteps } from '../domain/turns/run/waiting-steps.ts'
import { cancelLeftChildren } from '../domain/turns/sweep/left-children.ts'
import {
  type OwnActivities,
  releaseDeadProcesses,
  releaseLostActivities,
  releaseUnclaimedActivities,
} from '../domain/turns/sweep/lost-activities.ts'
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
import { CALL_PLACES, createAllCalls } from './calls.ts'
import { type Heartbeats, startHeartbeats } from './heartbeats.ts'
import type { LatePolls } from './late-polls.ts'
import { holdLease, type Lease } from './lease.ts'
import { connectForLease, type LeaseConnection } from './lease-connection.ts'
import { type WatchedActivities, watchActivities } from './own-activities.ts'

export type WorkerOptions = {
  temporal: TemporalSettings
  taskQueue: string
  /** The way to the record, in which a thread renews the lease of a process that is too busy. */
  database: PostgresSettings
  /** Build id of the workflows. Default: this release's, see `BEGINS_STEPS`. */
  buildId?: string
  /** False: nothing sends heartbeats while the event loop is blocked. Saves half a second where many workers start. */
  heartbeatThread?: boolean
  /** Tells when the library's polls are late. Default: nobody looks. */
  polls?: Pick<LatePolls, 'late'>
  /** Called with the connection on which the worker polls, undefined when it stops. Turns start eagerly on it. */
  onConnection?: (connection: NativeConnection | undefined) => void
}

export type RunningWorker = { stop(): Promise<void>; stopped: Promise<void> }

const SWEEP_MS = 1000
/** The turns of a dead process stand still meanwhile. */
const TAKE_OVER_MS = 500
/** Interval that is also the delay of a delivery, on average half of it. */
const WAKE_MS = 500
const RECONCILE_MS = 5000
const DELETE_MS = 5000
const SYNC_MS = 2000
const FIND_LATE_MS = 15_000
const RECONNECT_MS = 1000
const SHUTDOWN_GRACE_MS = 5000
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
  const own = watchActivities()
  const sweeping = sweep(deps, own, stopping.signal)
  const working = work(deps, options, own, stopping.signal)
  const stopped = Promise.all([sweeping, working]).then(() => {})
  return {
    stopped,
    stop: async () => {
      stopping.abort()
      await stopped
    },
  }
}

/** Number of shifts that have ended and whose activities go on. */
const OLD_SHIFTS = 3

/**
 * Polls until stopped. Without Postgres, a process takes nothing, because it would only fail; its activities go on until
 * `OLD_SHIFTS` more shifts have ended.
 */
async function work(deps: Deps, options: WorkerOptions, own: WatchedActivities, signal: AbortSignal): Promise<void> {
  const record = connectForLease(options.database, deps.attempts.process)
  const lease = holdLease(deps, record, own.noteSilence, signal)
  const everyShift = { deps, options, record, lease, own, calls: createAllCalls() }
  /** The last shift, and those before it. */
  let shifts: Shift[] = []
  while (!signal.aborted) {
    try {
      const shift = await beginShift(everyShift, signal)
      shifts[0]?.leave()
      shifts[OLD_SHIFTS]?.cutShort()
      shifts = [shift, ...shifts.slice(0, OLD_SHIFTS)]
      await shift.polling
    } catch (error) {
      warnRarely(deps.log, { err: (error as Error).message }, 'worker interrupted; it begins again')
      await sleep(RECONNECT_MS, signal)
    }
  }
  await Promise.all(shifts.map(({ ended }) => ended.catch(() => {})))
  await lease.released
  await record.close()
}

const placeOf = ({ attempts: { process } }: Deps) => ({ process, identity: workerIdentity(process) })

/**
 * The process's two workers from their start on: one for everything, and one for the rest of steps that have begun in
 * this process.
 */
type Shift = {
  /**
   * Resolves when the workers take nothing new: they were stopped, Postgres is away, or the library asks Temporal for
   * work too rarely, which another shift does not. Rejects when one has failed.
   * While Postgres is away, what others leave to this process is still taken, and fails at once.
   */
  polling: Promise<void>
  /** Ends that, because another shift has begun. */
  leave(): void
  /** Resolves when their activities have ended, too. */
  ended: Promise<void>
  /** Ends the activities. Temporal tries them again. */
  cutShort(): void
}

/** What all shifts have in common. The limits of `calls` are the process's. */
type EveryShift = {
  deps: Deps
  options: WorkerOptions
  record: LeaseConnection
  lease: Lease
  own: WatchedActivities
  calls: ReturnType<typeof createAllCalls>
}

/** Begins a shift once Temporal and Postgres can be reached. It ends when the signal aborts. */
async function beginShift(every: EveryShift, signal: AbortSignal): Promise<Shift> {
  const { deps, options, record } = every
  const { temporal, database, heartbeatThread } = options
  await record.probe()
  const connection = await NativeConnection.connect(temporalOptions(temporal))
  const cut = new AbortController()
  const place = { temporal, database, ...placeOf(deps) }
  const heartbeats = startHeartbeats(connection, place, deps.log, cut.signal, heartbeatThread)
  const close = async () => {
    await heartbeats.close()
    await connection.close().catch(() => {})
  }
  try {
    const workers = await createWorkers(every, connection, heartbeats)
    return runWorkers(every, { workers, connection, cut, close }, signal)
  } catch (error) {
    await close()
    throw error
  }
}

function createWorkers(every: EveryShift, connection: NativeConnection, heartbeats: Heartbeats) {
  const { deps, options, own, calls } = every
  const queueOf = (process: number) => `${options.taskQueue}/${process.toString(36)}`
  const activities = createActivities(deps, heartbeats, queueOf, calls)
  const { identity } = placeOf(deps)
  return Promise.all([
    createWorker(options, connection, activities, { identity, interceptors: own.interceptors, ...deps.limits }),
    Worker.create({
      ...COMMON,
      connection,
      identity,
      namespace: options.temporal.TEMPORAL_NAMESPACE,
      taskQueue: queueOf(deps.attempts.process),
      // Its activities only wait for attempts, thousands of them; the lease tells when the process has died.
      maxHeartbeatThrottleInterval: '4 minutes',
      activities: { reason: activities.reason },
      interceptors: own.interceptors,
      // They come together when many turns have begun together, and have little time to get here.
      activityTaskPollerBehavior: { type: 'simple-maximum', maximum: 10 },
      maxConcurrentActivityTaskExecutions: deps.limits.maxModelCalls,
    }),
  ])
}

type Staff = {
  workers: [forAll: Worker, forOwn: Worker]
  connection: NativeConnection
  cut: AbortController
  close(): Promise<void>
}

function runWorkers(
  { deps, options, lease }: EveryShift,
  { workers, connection, cut, close }: Staff,
  signal: AbortSignal,
): Shift {
  const [forAll] = workers
  const leaving = new AbortController()
  const takeNothing = () => {
    if (leaving.signal.aborted) return
    leaving.abort()
    options.onConnection?.(undefined)
    shutDown([forAll])
  }
  const end = () => {
    takeNothing()
    shutDown(workers)
    setTimeout(() => cut.abort(), SHUTDOWN_GRACE_MS).unref()
  }
  const stop = () => {
    deps.attempts.close()
    end()
  }
  const running = workers.map((worker) => worker.run())
  options.onConnection?.(connection)
  const leased = lease.poll(connection, leaving.signal)
  // A worker that fails waits for its activities before it says so.
  const watch = setInterval(() => {
    if (!leaving.signal.aborted && workers.some((worker) => worker.getState() !== 'RUNNING')) end()
  }, SWEEP_MS).unref()
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  deps.log.info({ taskQueue: options.taskQueue }, 'worker polls')
  const ended = endTogether(running, end).finally(async () => {
    clearInterval(watch)
    signal.removeEventListener('abort', stop)
    takeNothing()
    await leased
    await close()
  })
  const lost = leased.then((how) => (how === 'lost' ? takeNothing() : ended))
  const late = options.polls?.late().then(takeNothing) ?? ended
  const polling = Promise.race([ended, lost, late])
  return { polling, ended, leave: () => shutDown(workers), cutShort: () => cut.abort() }
}

function shutDown(workers: Worker[]): void {
  for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown()
}

/** Waits until all have ended, and ends the others when one fails. Rejects with its error. */
async function endTogether(running: Promise<void>[], end: () => void): Promise<void> {
  for (const one of running) one.catch(end)
  const ended = await Promise.allSettled(running)
  const failed = ended.find((end) => end.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

/** Settings of both workers. */
const COMMON = {
  // Longer than any activity: a shift that ends because Postgres is away lets its activities go on.
  shutdownGraceTime: '24 hours',
  activityTaskPollerBehavior: POLLERS,
} as const

/** Number of workflow tasks at once and of workflows kept in memory, which must be equal. */
const WORKFLOW_TASKS = 500

const createWorker = async (
  { temporal: { TEMPORAL_NAMESPACE: namespace }, taskQueue, buildId = `${BEGINS_STEPS}${version}` }: WorkerOptions,
  connection: NativeConnection,
  activities: ReturnType<typeof createActivities>,
  {
    identity,
    interceptors,
    maxModelCalls,
  }: Pick<WatchedActivities, 'interceptors'> & { identity: string; maxModelCalls: number },
): Promise<Worker> =>
  Worker.create({
    ...COMMON,
    connection,
    identity,
    namespace,
    taskQueue,
    activities,
    interceptors,
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
function sweep(deps: Deps, own: OwnActivities, signal: AbortSignal): Promise<unknown> {
  const swept = new Map<string, number>()
  const asked = new Map<string, number>()
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
    repeat(deps, TAKE_OVER_MS, signal, 'taking over from dead processes', () => releaseDeadProcesses(deps)),
    repeat(deps, TAKE_OVER_MS, signal, 'looking for unclaimed activities', () =>
      releaseUnclaimedActivities(deps, asked, own),
    ),
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
