import { setTimeout as sleep } from 'node:timers/promises'
import { type ResourceLimits, Worker } from 'node:worker_threads'
import type { ThreadMessage } from './worker.ts'

export type Ran<Answer> = {
  /** In the order in which the thread gave them; one that did not get done may have given some. */
  answers: Answer[]
  /** late: its time was over. broken: the thread died, mostly of memory. busy: it was not begun. */
  end: 'done' | 'late' | 'broken' | 'busy'
}

export type ThreadPool<Job, Answer> = {
  /**
   * Runs a job in a thread; `timeLimitMs` is CPU time of the thread, so that a busy machine costs nobody an answer.
   * When `signal` aborts, rejects with its reason. Rejects too when no thread can be started.
   */
  run(job: Job, timeLimitMs: number, signal?: AbortSignal): Promise<Ran<Answer>>
  /** Ends the threads that are idle, and each other one when its job has ended. */
  close(): Promise<void>
}

export type ThreadPoolOptions = {
  /** A program that calls serveJobs. */
  file: URL
  maxThreads: number
  /** How long a job may wait for a thread. */
  waitMs: number
  resourceLimits: ResourceLimits
}

/** So many jobs are held in memory before more are turned away. */
const MAX_WAITING = 500
/** A thread is worth 10 to 50 MB; to start one takes a tenth of a second. */
const IDLE_MS = 30_000
/** A job that is not given the machine is ended after this many times its time limit. */
const MOST_WAITING = 3
/** A thread that does not even answer for so long has not enough memory to get anything done. */
const UNANSWERED_MS = 3000
const unanswered = (): Promise<void> => sleep(UNANSWERED_MS, undefined, { ref: false })

/** Threads for work that may take time and memory: started when needed, and ended when a job does not get done. */
export function createThreadPool<Job, Answer>(options: ThreadPoolOptions): ThreadPool<Job, Answer> {
  const slots = createSlots(options)
  const idle = createIdleThreads()
  const start = async (): Promise<Worker> => {
    const worker = new Worker(options.file, { env: {}, resourceLimits: options.resourceLimits })
    worker.once('exit', () => idle.drop(worker))
    await ready(worker)
    return worker
  }
  return {
    run: async (job, timeLimitMs, signal = new AbortController().signal) => {
      if (!(await slots.enter(signal))) return { answers: [], end: 'busy' }
      let left: Promise<unknown> = Promise.resolve()
      try {
        const worker = idle.take() ?? (await start())
        const ran = await runOn<Job, Answer>(worker, job, timeLimitMs, signal)
        if (ran.end === 'done') idle.keep(worker)
        // One that collects garbage without end ends when it is done with that; its caller is not kept waiting.
        else left = worker.terminate()
        signal.throwIfAborted()
        return ran
      } finally {
        void left.finally(slots.leave)
      }
    },
    close: idle.close,
  }
}

/** They hold no process up. */
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

/** As many at once as there may be threads; the others wait in the order of arrival. */
function createSlots({ maxThreads, waitMs }: ThreadPoolOptions) {
  let taken = 0
  const waiting = new Set<() => void>()
  return {
    /** False when there was no room in time. When `signal` aborts, rejects with its reason. */
    async enter(signal: AbortSignal): Promise<boolean> {
      signal.throwIfAborted()
      if (taken >= maxThreads) return waiting.size < MAX_WAITING && waitIn(waiting, waitMs, signal)
      taken++
      return true
    },
    /** Hands the slot over: were it free for a moment, a newcomer would get in before those who wait. */
    leave(): void {
      const [next] = waiting
      if (next === undefined) taken--
      else next()
    },
  }
}

/** Resolves with true when it is called from the queue, with false when that takes too long. */
function waitIn(queue: Set<() => void>, waitMs: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      queue.delete(begin)
    }
    const begin = () => {
      end()
      resolve(true)
    }
    const stop = () => {
      end()
      reject(signal.reason)
    }
    const giveUp = () => {
      end()
      resolve(false)
    }
    const timer = setTimeout(giveUp, waitMs)
    signal.addEventListener('abort', stop)
    queue.add(begin)
  })
}

/** A thread says first that it has loaded its program. */
const ready = (worker: Worker): Promise<void> =>
  new Promise((resolve, reject) => {
    worker.once('message', () => resolve())
    // Stays: what a job does to its thread is told by its exit, and an error that nobody hears ends the process.
    worker.on('error', reject)
    worker.once('exit', () => reject(new Error('a thread ended as it started')))
  })

/** When it does not get done, the thread is ended. */
async function runOn<Job, Answer>(
  worker: Worker,
  job: Job,
  timeLimitMs: number,
  signal: AbortSignal,
): Promise<Ran<Answer>> {
  const ran: Ran<Answer> = { answers: [], end: 'broken' }
  const over = Promise.withResolvers<void>()
  const stop = () => over.resolve()
  const endAs = (end: 'done' | 'late') => {
    ran.end = end
    stop()
  }
  const listen = (message: ThreadMessage<Answer>) =>
    'answer' in message ? ran.answers.push(message.answer) : endAs('done')
  const limit = limitCpu(worker, timeLimitMs, () => endAs('late'))
  worker.on('message', listen).once('exit', stop)
  signal.addEventListener('abort', stop)
  try {
    await Promise.race([limit.begun, over.promise])
    if (!signal.aborted && post(worker, job)) await over.promise
    // What it said until then still arrives, even that it is done.
    if (ran.end !== 'done') await Promise.race([worker.terminate(), unanswered()])
    return ran
  } finally {
    limit.clear()
    worker.off('message', listen).off('exit', stop)
    signal.removeEventListener('abort', stop)
  }
}

/** Calls `onOver` when the thread has used so much CPU time, or has waited for the machine for much longer. */
function limitCpu(worker: Worker, limitMs: number, onOver: () => void) {
  let isCleared = false
  let startMs = 0
  let timer: NodeJS.Timeout | undefined
  const mostWaiting = setTimeout(onOver, limitMs * MOST_WAITING)
  const lookAfter = (leftMs: number) => {
    if (!isCleared) timer = setTimeout(look, Math.ceil(leftMs))
  }
  const look = async () => {
    const leftMs = startMs + limitMs - (await cpuMs(worker))
    if (leftMs > 0) lookAfter(leftMs)
    else if (!isCleared) onOver()
  }
  const begin = async () => {
    startMs = await cpuMs(worker)
    lookAfter(limitMs)
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

/** Answered in the middle of a job too. A thread that has ended needs no more time, one that does not answer gets none. */
async function cpuMs(worker: Worker): Promise<number> {
  try {
    const usage = await Promise.race([worker.cpuUsage(), unanswered()])
    return usage === undefined ? Number.POSITIVE_INFINITY : (usage.user + usage.system) / 1000
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** False for what is nested too deeply to be copied. */
function post(worker: Worker, job: unknown): boolean {
  try {
    worker.postMessage(job)
    return true
  } catch {
    return false
  }
}
