import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Answer, END_SIGNALS, type EndReason, type Job, type Keep, READY, type Reply } from './job.ts'

/** The process was ended. The database in its file is unchanged. */
export type Ended = { outcome: EndReason | 'killed' }

export type DatabaseProcess = {
  /** Waits until the process can work. Throws when it cannot, or not in time. */
  start(timeMs: number, signal: AbortSignal): Promise<void>
  /**
   * Runs a job, one per process at a time. Kills the process after `timeMs`, and when `signal` aborts: the call then
   * rejects with its reason.
   */
  call(message: Job | Keep, timeMs: number, signal?: AbortSignal): Promise<Reply | Ended>
  isAlive(): boolean
  /** False when it should not be used again. */
  isFresh(): boolean
  /** Resolves when the process has ended, so that its files can be used. */
  kill(): Promise<void>
}

export type ProcessPool = {
  /** Takes an idle process, or starts one and waits until it can work. */
  take(signal: AbortSignal): Promise<DatabaseProcess>
  /** Returns a process that has nothing open, or has ended. */
  giveBack(process: DatabaseProcess): void
  close(): Promise<void>
}

/** Time limit for starting a process on a busy machine. */
const START_MS = 20_000

/** Exit code of a process that could not allocate memory. */
const ABORTED = 134

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
/** A process may read only its program and `folder`, which has the databases. */
const execArgv = (folder: string): string[] => [
  '--max-old-space-size=128',
  '--permission',
  '--allow-worker',
  `--allow-fs-read=${at('.')}`,
  `--allow-fs-read=${at('../../../../package.json')}`,
  `--allow-fs-read=${folder}`,
  `--allow-fs-write=${folder}`,
  '--disallow-code-generation-from-strings',
  '--disable-warning=ExperimentalWarning',
]

/** `warmMs`: time without work after which a process is ended. */
export function createProcessPool(folder: string, warmMs: number): ProcessPool {
  const idle = new Map<DatabaseProcess, NodeJS.Timeout>()
  const all = new Set<DatabaseProcess>()
  const end = async (process: DatabaseProcess) => {
    clearTimeout(idle.get(process))
    idle.delete(process)
    await process.kill()
    all.delete(process)
  }
  const takeIdle = (): DatabaseProcess | undefined => {
    // The most recently used first, so that the others can end.
    for (const process of [...idle.keys()].reverse()) {
      clearTimeout(idle.get(process))
      idle.delete(process)
      if (process.isAlive()) return process
      all.delete(process)
    }
    return undefined
  }
  return {
    take: async (signal) => {
      const warm = takeIdle()
      if (warm !== undefined) return warm
      const process = startProcess(folder)
      all.add(process)
      try {
        await process.start(START_MS, signal)
        return process
      } catch (error) {
        await end(process)
        throw error
      }
    },
    giveBack: (process) => {
      if (process.isFresh()) idle.set(process, setTimeout(() => end(process), warmMs).unref())
      else end(process)
    },
    close: async () => {
      await Promise.all([...all].map(end))
    },
  }
}

function startProcess(folder: string): DatabaseProcess {
  const child = fork(at('./program.ts'), [String(process.pid)], {
    ...{ env: {}, execArgv: execArgv(folder), serialization: 'advanced', stdio: 'ignore' },
  })
  let [isAlive, isSpent] = [true, false]
  const { promise: hasEnded, resolve: onEnded } = Promise.withResolvers<Ended | Error>()
  child.on('error', onEnded).on('exit', (code, signal) => onEnded(reasonOf(code, signal)))
  /** Listener of the waiting call. A promise would keep all its earlier listeners. */
  let onEnd: ((reason: Ended | Error) => void) | undefined
  hasEnded.then((reason) => {
    isAlive = false
    onEnd?.(reason)
  })
  const kill = async () => {
    child.kill('SIGKILL')
    await hasEnded
  }
  /** Resolves with the next message. */
  const receive = async <Message>(timeMs: number, signal?: AbortSignal): Promise<Message | Ended> => {
    const { promise, resolve, reject } = Promise.withResolvers<Message | Ended>()
    let settle: (() => void) | undefined
    const end = (then: () => void) => {
      settle ??= then
      kill()
    }
    const timer = setTimeout(end, timeMs, () => resolve({ outcome: 'late' }))
    const stop = () => end(() => reject(signal?.reason))
    // Settles only after the process has ended, so that it no longer writes to its files.
    onEnd = (reason) => {
      if (settle !== undefined) settle()
      else if (reason instanceof Error) reject(reason)
      else resolve(reason)
    }
    if (!isAlive) onEnd(await hasEnded)
    signal?.addEventListener('abort', stop)
    child.once('message', resolve)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
      child.off('message', resolve)
      onEnd = undefined
    }
  }
  return {
    isAlive: () => isAlive,
    isFresh: () => isAlive && !isSpent,
    kill,
    start: async (timeMs, signal) => {
      const first = await receive<typeof READY>(timeMs, signal)
      if (first !== READY) throw new Error(`A database process did not start: ${first.outcome}.`)
    },
    call: async (message, timeMs, signal) => {
      signal?.throwIfAborted()
      // Sending fails only if the process has ended, which is noticed elsewhere.
      child.send(message, () => {})
      const answer = await receive<Answer>(timeMs, signal)
      if ('outcome' in answer) return answer
      isSpent ||= answer.isSpent
      return answer.reply
    },
  }
}

function reasonOf(code: number | null, signal: NodeJS.Signals | null): Ended | Error {
  if (signal === END_SIGNALS.late) return { outcome: 'late' }
  if (signal === END_SIGNALS.out_of_memory || signal === 'SIGABRT' || code === ABORTED)
    return { outcome: 'out_of_memory' }
  if (signal === 'SIGKILL') return { outcome: 'killed' }
  return new Error(`A database process ended early: ${signal ?? code}.`)
}
