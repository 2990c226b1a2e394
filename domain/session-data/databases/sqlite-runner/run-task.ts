import { type Copies, type Copy, DamagedPages } from './copies.ts'
import type { Done, Job, JobLimits, Reply } from './job.ts'
import type { DatabaseProcess, Ended, ProcessPool } from './processes.ts'
import type { ExecuteResult, Failure, FailureKind, PageSource, Store } from './sqlite-runner.ts'
import { readChanges } from './wal.ts'

/** Call of the SQLite runner. Only an execute has a `store`. */
export type Task = Pick<Job, 'do' | 'sql' | 'params'> & { source: PageSource; store?: Store }

/** Maximum runs of a script while others store changes first. */
const MAX_TRIES = 5
/** Time that a process has to stop by itself at its time limit. */
export const GRACE_MS = 3000
/** Time to move 50 MiB from one file to another. */
const KEEP_MS = 30_000

const UNCHANGED = { numbers: [], bytes: new Uint8Array() }
const MESSAGES = {
  late: 'The SQL took too long and was stopped',
  out_of_memory: 'The SQL needed too much memory and was stopped',
  damaged: 'The database is damaged',
  busy: 'Too many databases are in use; try again later',
  conflict: 'Others change the database all the time; try again later',
  gone: 'The database was deleted',
}

export function failureOf(outcome: Exclude<FailureKind, 'sql_error'>, message = MESSAGES[outcome]): Failure {
  return { outcome, message }
}

/** Runs a call whose turn has come, with exclusive use of the database. */
export async function runTask(
  { copies, processes }: { copies: Copies; processes: ProcessPool },
  task: Task,
  limits: JobLimits,
  signal: AbortSignal,
): Promise<Done | Failure> {
  const { id } = task.source
  let [timesDamaged, timesKilled] = [0, 0]
  try {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      signal.throwIfAborted()
      const ran = await runOnce(copies, processes, task, limits, signal)
      if (ran.outcome === 'damaged') {
        await copies.discard(id)
        // The file may be at fault. It is read from the record once more.
        if (++timesDamaged > 1) return failureOf('damaged', `${MESSAGES.damaged} (${ran.message})`)
      } else if (ran.outcome === 'killed') {
        // The kernel kills processes when memory runs out. A second kill shows that this call uses it up.
        if (++timesKilled > 1) return failureOf('out_of_memory')
      } else if (ran.outcome !== 'conflict') return ran
    }
    return failureOf('conflict')
  } finally {
    await copies.release(id)
  }
}

async function runOnce(
  copies: Copies,
  processes: ProcessPool,
  { source, store, ...job }: Task,
  limits: JobLimits,
  signal: AbortSignal,
): Promise<Done | Failure | Killed> {
  const { id } = source
  // Taken before the record is read: others may change it while a process starts.
  const process = await processes.take(signal)
  try {
    const copy = await copies.use(source)
    if (copy === undefined) return failureOf('gone')
    const reply = await process.call({ ...job, path: copy.path, limits }, limits.timeMs + GRACE_MS, signal)
    if (reply.outcome !== 'done' || store === undefined) return toResult(reply, limits)
    return await storeChanges(copies, process, copy, { id, store, done: reply })
  } catch (error) {
    // Closing the database would move unstored changes into its file.
    await process.kill()
    await copies.discard(id)
    if (error instanceof DamagedPages) return { outcome: 'damaged', message: error.message }
    throw error
  } finally {
    if (!process.isAlive()) await copies.rollBack(id)
    processes.giveBack(process)
  }
}

async function storeChanges(
  copies: Copies,
  process: DatabaseProcess,
  copy: Copy,
  { id, store, done }: { id: string; store: Store; done: Done },
): Promise<Done | Failure> {
  const changes = await readChanges(`${copy.path}-wal`)
  const { version, pageCount } = copy
  // A database never shrinks, unless its file was removed under the process.
  if (changes !== undefined && changes.pageCount < pageCount) throw new Error('A database has lost pages.')
  // The job was an execute.
  const stored = await store({ version, pageCount, ...(changes ?? UNCHANGED) }, done.result as ExecuteResult)
  if (stored !== 'stored') {
    await process.kill()
    if (stored === 'gone') await copies.discard(id)
    return failureOf(stored)
  }
  // The call has succeeded. If its changes do not reach the file, there is just no copy.
  const kept = await process.call({ do: 'keep' }, KEEP_MS).catch(() => undefined)
  if (kept?.outcome !== 'kept') await copies.discard(id)
  else if (changes !== undefined) {
    copies.advance(id, { path: copy.path, version: version + 1, pageCount: changes.pageCount })
  }
  return done
}

type Killed = { outcome: 'killed' }

export function toResult(reply: Reply | Ended, { timeMs }: JobLimits): Done | Failure | Killed {
  switch (reply.outcome) {
    case 'done':
    case 'sql_error':
    case 'damaged':
      return reply
    case 'killed':
      return { outcome: reply.outcome }
    case 'late':
      return failureOf('late', `The SQL took longer than ${timeMs / 1000} seconds and was stopped`)
    case 'out_of_memory':
      return failureOf('out_of_memory')
    case 'failed':
      throw new Error(`A database process failed: ${reply.message}`)
    case 'kept':
      throw new Error('A database process has kept what it was to run.')
  }
}
