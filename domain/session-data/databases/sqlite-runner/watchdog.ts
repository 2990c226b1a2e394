import { parentPort, workerData } from 'node:worker_threads'
import { END_SIGNALS, type EndReason, type JobLimits } from './job.ts'

/**
 * Thread that ends its process at a job's limits of time and memory, and when the service has died. SQLite cannot be
 * interrupted while it runs, and its `hard_heap_limit` has no effect in Node's build.
 */

/** `undefined` when the job is over. */
export type Watched = JobLimits | undefined

/** Short enough for SQLite, which can fill some gigabytes in a second. */
const CHECK_MS = 20
const IDLE_CHECK_MS = 1000

const { parentId } = workerData as { parentId: number }
let job: (NonNullable<Watched> & { endsAt: number }) | undefined
let timer = setInterval(check, IDLE_CHECK_MS)

function check(): void {
  if (process.ppid !== parentId) end('out_of_memory')
  if (job === undefined) return
  if (performance.now() > job.endsAt) end('late')
  if (process.memoryUsage.rss() > job.memoryBytes) end('out_of_memory')
}

const end = (reason: EndReason) => process.kill(process.pid, END_SIGNALS[reason])

parentPort?.on('message', (watched: Watched) => {
  job = watched && { ...watched, endsAt: performance.now() + watched.timeMs }
  clearInterval(timer)
  timer = setInterval(check, watched === undefined ? IDLE_CHECK_MS : CHECK_MS)
})
parentPort?.postMessage('ready')
