import { Worker as Thread } from 'node:worker_threads'
import { ApplicationFailure, Context } from '@temporalio/activity'
import type { NativeConnection } from '@temporalio/worker'
import type { Deps } from '../domain/deps.ts'
import type { Attempt } from '../domain/turns/run/running-attempt.ts'
import type { HeartbeatMessage, HeartbeatThreadData } from './heartbeat-thread.ts'
import { BEAT_MS, STALLED_MS } from './stall.ts'

export type Heartbeats = {
  /** Runs the work of the current activity, with heartbeats until it ends. */
  during<T>(work: (attempt: Attempt) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** Interval at which heartbeats are offered to the library, which sends fewer: see the workers' options. */
const HEARTBEAT_MS = 2000
const RARE_HEARTBEAT_MS = 240_000
const CALL_TIMEOUT_MS = 2000
/** Heartbeat timeout from which on an activity outlasts any stall. */
const RARE_MS = 60_000
/** Time after a stall in which tasks that came during it may still begin. */
const AFTER_STALL_MS = 1000
const THREAD_LIMITS = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 }
/** A gRPC status code. */
const NOT_FOUND = 5

/**
 * Sends the heartbeats of a worker's activities, which end early when `cut` aborts. The main thread sends them, and learns of cancellations from the
 * answers. While its event loop is blocked, a thread sends them instead.
 */
export function startHeartbeats(
  connection: NativeConnection,
  place: Omit<HeartbeatThreadData, 'beats'>,
  log: Deps['log'],
  cut: AbortSignal,
  hasThread = true,
): Heartbeats {
  const { temporal, identity } = place
  const beats = new SharedArrayBuffer(4)
  const thread = hasThread ? startThread({ ...place, beats }, log) : undefined
  const loop = watchLoop(new Int32Array(beats))
  const post = (message: HeartbeatMessage) => thread?.postMessage(message)
  return {
    during: async (work) => {
      const { info, cancellationSignal, heartbeat } = Context.current()
      const token = info.base64TaskToken
      // The thread would send them too often for an activity with minutes between heartbeats.
      const isUrgent = (info.heartbeatTimeoutMs ?? 0) < RARE_MS
      const timer = setInterval(() => heartbeat(), isUrgent ? HEARTBEAT_MS : RARE_HEARTBEAT_MS)
      if (isUrgent) post({ begun: token })
      try {
        if (loop.wasBlocked())
          await expectWanted(connection, {
            namespace: temporal.TEMPORAL_NAMESPACE,
            identity,
            taskToken: info.taskToken,
          })
        const signal = AbortSignal.any([cancellationSignal, cut])
        return await work({ fence: info.currentAttemptScheduledTimestampMs, signal })
      } catch (error) {
        throw cut.aborted ? ApplicationFailure.retryable('the worker stops', 'worker_stops') : error
      } finally {
        clearInterval(timer)
        if (isUrgent) post({ ended: token })
      }
    },
    close: async () => {
      loop.stop()
      await thread?.terminate()
    },
  }
}

function startThread(workerData: HeartbeatThreadData, log: Deps['log']): Thread {
  const thread = new Thread(new URL('./heartbeat-thread.ts', import.meta.url), {
    workerData,
    resourceLimits: THREAD_LIMITS,
  })
  thread.unref()
  thread.on('error', (err) => log.error({ err }, 'heartbeat thread ended; a busy process may lose its turns'))
  return thread
}

/** Raises the counter as long as the event loop turns, and remembers when it was blocked. */
function watchLoop(beats: Int32Array<SharedArrayBuffer>) {
  let beatAt = performance.now()
  let freeSince = Number.NEGATIVE_INFINITY
  const beat = () => {
    const now = performance.now()
    if (now - beatAt > STALLED_MS) freeSince = now
    beatAt = now
    Atomics.add(beats, 0, 1)
  }
  const timer = setInterval(beat, BEAT_MS).unref()
  return {
    /** True just after a stall, even before the first beat. */
    wasBlocked: (): boolean => {
      const now = performance.now()
      return now - beatAt > STALLED_MS || now - freeSince < AFTER_STALL_MS
    },
    stop: () => clearInterval(timer),
  }
}

type Task = { namespace: string; identity: string; taskToken: Uint8Array }

/**
 * Ends an attempt that Temporal has given up. Nobody sent heartbeats for a task that arrived while the event loop was
 * blocked, so another attempt may have begun.
 */
async function expectWanted(connection: NativeConnection, task: Task): Promise<void> {
  try {
    await connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
      connection.workflowService.recordActivityTaskHeartbeat(task),
    )
  } catch (error) {
    if ((error as { code?: unknown }).code !== NOT_FOUND) return
    throw ApplicationFailure.retryable('the attempt came too late, because its process was busy')
  }
}
