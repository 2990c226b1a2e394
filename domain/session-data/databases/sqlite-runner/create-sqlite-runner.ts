import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Claim, createFairQueue, createKeyedQueue } from '../../../../lib/fair-queue.ts'
import { type Copies, createCopies, removeFiles } from './copies.ts'
import { makeFolder, removeFolder } from './folder.ts'
import type { JobLimits } from './job.ts'
import { loadFile } from './load-file.ts'
import { createProcessPool, type ProcessPool } from './processes.ts'
import { failureOf, runTask, type Task } from './run-task.ts'
import type { Description, ExecuteResult, Failure, QueryResult, Ran, SqliteRunner } from './sqlite-runner.ts'

export type SqliteRunnerOptions = {
  /** Time limit for a call's SQL. */
  timeMs?: number
  /** Memory limit of a process, including about 90 MB for Node.js itself. */
  memoryBytes?: number
  /** Time after which a process without work is ended. */
  warmMs?: number
  /** Maximum bytes of all copies. In a container, the temporary folder may be in memory. */
  diskBytes?: number
  /** Time after which an unused copy is removed. */
  idleMs?: number
}

/** Maximum number of calls that wait for one database. */
const WAITING = { maxWaiting: 100, maxWaitingOfOwner: 100 }
/** Maximum number of concurrent calls, on any number of cores. Each can take 400 MB of memory. */
const MAX_PROCESSES = 4
/** Maximum time that a call waits for the database, and then for a process: longer than another call's SQL. */
const WAIT_MS = 35_000

const DEFAULTS = {
  timeMs: 30_000,
  memoryBytes: 400_000_000,
  warmMs: 60_000,
  diskBytes: 256 * 1024 ** 2,
  idleMs: 600_000,
}

type Workshop = { folder: string; copies: Copies; processes: ProcessPool }

/** Creates a SQLite runner. Its processes and folder are created on demand. Close it at the end. */
export function createSqliteRunner(options: SqliteRunnerOptions = {}): SqliteRunner {
  const { timeMs, memoryBytes, warmMs, diskBytes, idleMs } = { ...DEFAULTS, ...options }
  const limits: JobLimits = { timeMs, memoryBytes }
  const databases = createKeyedQueue(1, WAIT_MS, WAITING)
  const slots = createFairQueue(MAX_PROCESSES, WAIT_MS)
  const closing = new AbortController()
  const running = new Set<Promise<unknown>>()
  let workshop: Promise<Workshop> | undefined

  const openWorkshop = async (): Promise<Workshop> => {
    const folder = await makeFolder()
    return { folder, copies: createCopies(folder, diskBytes, idleMs), processes: createProcessPool(folder, warmMs) }
  }
  const enterWorkshop = (): Promise<Workshop> => {
    workshop ??= openWorkshop()
    // The next call tries again.
    workshop.catch(() => {
      workshop = undefined
    })
    return workshop
  }
  const begin = async (task: Task, signal: AbortSignal) => runTask(await enterWorkshop(), task, limits, signal)
  const inSlot = <T>(claim: Claim, work: () => Promise<T | Failure>, signal: AbortSignal) =>
    slots.run<T | Failure>(claim, work, () => failureOf('busy'), signal)
  const runInTurn = (task: Task, claim: Claim, signal: AbortSignal) => {
    const work = () => inSlot(claim, () => begin(task, signal), signal)
    const refuse = () => failureOf('busy', 'Others use the database; try again later')
    return databases.run(task.source.id, claim, work, refuse, signal)
  }
  const untilEnded = async <Result>(call: Promise<Result>): Promise<Result> => {
    running.add(call)
    try {
      return await call
    } finally {
      running.delete(call)
    }
  }
  // A job's answer has the result of its kind.
  const run = <Result>(task: Task, claim: Claim, signal: AbortSignal): Promise<Ran<Result>> =>
    untilEnded(runInTurn(task, claim, AbortSignal.any([signal, closing.signal])) as Promise<Ran<Result>>)
  const load: SqliteRunner['load'] = async (bytes, store, claim, signal) => {
    const { folder, processes } = await enterWorkshop()
    const path = join(folder, `upload-${randomUUID()}.db`)
    try {
      await writeFile(path, bytes, { mode: 0o600, signal })
      return await inSlot(claim, () => loadFile(processes, path, store, limits, signal), signal)
    } finally {
      await removeFiles(path)
    }
  }

  return {
    query: (source, { sql, params = [] }, claim, signal) =>
      run<QueryResult>({ source, do: 'query', sql, params }, claim, signal),
    describe: (source, claim, signal) =>
      run<Description>({ source, do: 'describe', sql: '', params: [] }, claim, signal),
    execute: (source, { sql, params = [] }, store, claim, signal) =>
      run<ExecuteResult>({ source, do: 'execute', sql, params, store }, claim, signal),
    load: (bytes, store, claim, signal) =>
      untilEnded(load(bytes, store, claim, AbortSignal.any([signal, closing.signal]))),
    forget: (id) => {
      workshop?.then(({ copies }) => copies.forget(id)).catch(() => {})
    },
    close: async () => {
      closing.abort(new Error('The SQLite runner is closed.'))
      await Promise.allSettled(running)
      const { processes, folder } = (await workshop?.catch(() => undefined)) ?? {}
      await processes?.close()
      if (folder !== undefined) await removeFolder(folder)
    },
  }
}
