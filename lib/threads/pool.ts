import { setTimeout as sleep } from 'node:timers/promises'
import { type ResourceLimits, Worker } from 'node:worker_threads'
import { type Claim, createFairQueue } from '../fair-queue.ts'
import type { ThreadMessage } from './worker.ts'

export type Ran<Answer> = {
  /** Answers in the order in which the thread sent them. A job that was not completed may have sent some. */
  answers: Answer[]
  /**
   * `late`: the job used up its time. `broken`: the thread died, mostly out of memory. `busy`: there was no thread for
   * the job, or the machine did not give its thread the time.
   */
  end: 'done' | 'late' | 'broken' | 'busy'
  /** CPU time of a job that is done. */
  cpuMs: number
}

export type ThreadPool<Job, Answer> = {
  /**
   * Runs a job in a thread. `timeLimitMs` is CPU time of the thread, so that a busy machine fails no job early. Rejects
   * with the signal's reason when `signal` aborts, and when no thread can be started.
   */
  run(job: Job, timeLimitMs: number, signal?: AbortSignal, claim?: Claim): Promise<Ran<Answer>>
  /** Ends the idle threads now, and every other one when its job has ended. */
  close(): Promise<void>
}

export type ThreadPoolOptions = {
  /** The threads' program, which calls `serveJobs`. */
  file: URL
  maxThreads: number
  /** Time that a job may wait for a thread. */
  waitMs: number
  resourceLimits: ResourceLimits
}

/** Time for which an idle thread is kept. A thread takes 10 to 50 MB; starting one takes a tenth of a second. */
const IDLE_MS = 30_000
/** Multiple of its CPU time limit that a job may take in wall-clock time, as on a busy machine. */
const MAX_WAITING_FACTOR = 10
/** Time to wait for the end of a thread that does not answer. It may be out of memory. */
const UNANSWERED_MS = 3000
const unanswered = (): Promise<void> => sleep(UNANSWERED_MS, undefined, { ref: false })

/** Creates a pool of threads for expensive work. A thread is started when needed, and ended when its job fails. */
export function createThreadPool<Job, Answer>(options: ThreadPoolOptions): ThreadPool<Job, Answer> {
  const slots = createFairQueue(options.maxThreads, options.waitMs)
  const idle = createIdleThreads()
  const start = async (): Promise<Worker> => {
    const worker = new Worker(options.file, { env: {}, resourceLimits: options.resourceLimits })
    worker.once('exit', () => idle.drop(worker))
    await ready(worker)
    return worker
  }
  return {
    run: async (job, timeLimitMs, signal = new AbortController().signal, claim = {}) => {
      if (!(await slots.enter(claim, signal))) return { answers: [], end: 'busy', cpuMs: 0 }
      let left: Promise<unknown> = Promise.resolve()
      try {
        const worker = idle.take() ?? (await start())
        const { ran, isWhole } = await runOn<Job, Answer>(worker, job, timeLimitMs, signal)
        if (isWhole) idle.keep(worker)
        // A thread stuck in garbage collection ends only after that. The caller does not wait for it.
        else left = worker.terminate()
        signal.throwIfAborted()
        return ran
      } finally {
        void left.finally(() => slots.leave(claim))
      }
    },
    close: idle.close,
  }
}

/** Keeps idle threads for reuse. They do not keep the process alive. */
function createIdleThreads() {
  const idle = new Map<Worker, NodeJS.Timeout>()
  let isClosed = false
  const drop = async (worker: Worker): Promise<void> => {
    clearTimeout(idle.get(worker))
    idle.delete(worker)
    await worker.terminate()
  }
  return {
    drop,
    async close(): Promise<void> {
      isClosed = true
      await Promise.all([...idle.keys()].map(drop))
    },
    keep(worker: Worker): void {
      if (isClosed) return void drop(worker)
      worker.unref()
      idle.set(worker, setTimeout(() => drop(worker), IDLE_MS).unref())
    },
    take(): Worker | undefined {
      const latest = [...idle.keys()].at(-1)
      if (latest === undefined) return undefined
      clearTimeout(idle.get(latest))
      idle.delete(latest)
      latest.ref()
      return latest
    },
  }
}

/** Waits for the thread's first message, which reports that it has loaded its program. */
const ready = (worker: Worker): Promise<void> =>
  new Promise((resolve, reject) => {
    worker.once('message', () => resolve())
    // The listener stays: a job that breaks its thread is noticed by the exit, but an unhandled error ends the process.
    worker.on('error', reject)
    worker.once('exit', () => reject(new Error('a thread ended as it started')))
  })

/** Runs a job on a thread, and ends the thread when the job is not completed. `isWhole`: the thread was not ended. */
async function runOn<Job, Answer>(
  worker: Worker,
  job: Job,
  timeLimitMs: number,
  signal: AbortSignal,
): Promise<{ ran: Ran<Answer>; isWhole: boolean }> {
  const ran: Ran<Answer> = { answers: [], end: 'broken', cpuMs: 0 }
  const over = Promise.withResolvers<void>()
  const stop = () => over.resolve()
  const endAs = (end: Ran<Answer>['end'], cpuMs = 0) => {
    Object.assign(ran, { end, cpuMs })
    stop()
  }
  const listen = (message: ThreadMessage<Answer>) =>
    'answer' in message ? ran.answers.push(message.answer) : endAs('done', 'cpuMs' in message ? message.cpuMs : 0)
  const limit = limitCpu(worker, timeLimitMs, endAs)
  worker.on('message', listen).once('exit', stop)
  signal.addEventListener('abort', stop)
  try {
    await Promise.race([limit.begun, over.promise])
    if (!signal.aborted && post(worker, job)) await over.promise
    const isWhole = ran.end === 'done'
    // Messages that the thread sent earlier still arrive, even its report of the job's end.
    if (!isWhole) await Promise.race([worker.terminate(), unanswered()])
    return { ran, isWhole }
  } finally {
    limit.clear()
    worker.off('message', listen).off('exit', stop)
    signal.removeEventListener('abort', stop)
  }
}

/**
 * Calls `endAs` with `late` when the thread has used `limitMs` of CPU time, and with `busy` when it has not within a
 * multiple of that, whether or not it answers: then it is not the job that is slow.
 */
function limitCpu(worker: Worker, limitMs: number, endAs: (end: 'late' | 'busy' | 'broken') => void) {
  let isCleared = false
  let startMs = 0
  let timer: NodeJS.Timeout | undefined
  // The first reason counts: the thread is ended for it, and then has no time to tell.
  const end = (how: 'late' | 'busy' | 'broken') => {
    if (isCleared) return
    isCleared = true
    endAs(how)
  }
  const mostWaiting = setTimeout(end, limitMs * MAX_WAITING_FACTOR, 'busy')
  const lookAfter = (leftMs: number) => {
    timer = setTimeout(look, Math.ceil(leftMs))
  }
  const look = async () => {
    const nowMs = await cpuMs(worker)
    if (isCleared) return
    if (nowMs === undefined) end('broken')
    else if (nowMs < startMs + limitMs) lookAfter(startMs + limitMs - nowMs)
    else end('late')
  }
  const begin = async () => {
    startMs = (await cpuMs(worker)) ?? 0
    if (!isCleared) lookAfter(limitMs)
  }
  return {
    begun: begin(),
    clear: () => {
      isCleared = true
      clearTimeout(timer)
      clearTimeout(mostWaiting)
    },
  }
}

/** Reads the CPU time of a thread in ms, even in the middle of a job. Undefined if the thread has ended. */
async function cpuMs(worker: Worker): Promise<number | undefined> {
  try {
    const { user, system } = await worker.cpuUsage()
    return (user + system) / 1000
  } catch {
    return undefined
  }
}

/** Sends a job to a thread. False when the job is nested too deeply to be copied. */
function post(worker: Worker, job: unknown): boolean {
  try {
    worker.postMessage(job)
    return true
  } catch {
    return false
  }
}
