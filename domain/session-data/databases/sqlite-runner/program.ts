import { once } from 'node:events'
import { setPriority } from 'node:os'
import { Worker } from 'node:worker_threads'
import { type Answer, type Job, type Keep, READY, type Reply } from './job.ts'
import type { Open } from './open.ts'
import { runJob } from './run-job.ts'
import type { Watched } from './watchdog.ts'

/** Entry point of a database process. It has at most one database open, and keeps nothing from one job to the next. */

/** Lowest priority, so that everything else on the machine goes first. */
const NICENESS = 10

const watchdog = new Worker(new URL('./watchdog.ts', import.meta.url), {
  workerData: { parentId: Number(process.argv[2]) },
  resourceLimits: { maxOldGenerationSizeMb: 16 },
})
const watch = (watched: Watched) => watchdog.postMessage(watched)

/** Memory above which SQLite may still hold a job's memory. An idle process has less than 100 MB. */
const SPENT_BYTES = 200_000_000

/** Database of a finished execute, until it is kept. */
let open: Open | undefined

function handle(message: Job | Keep): Reply {
  if (message.do === 'keep') {
    open?.authorizer.runOwn('PRAGMA wal_checkpoint(TRUNCATE)')
    open?.db.close()
    open = undefined
    return { outcome: 'kept' }
  }
  watch(message.limits)
  const ran = runJob(message)
  watch(undefined)
  open = ran.open
  return ran.reply
}

const sendToParent = process.send?.bind(process)

setPriority(NICENESS)
// The signals reach the whole process group, as for Ctrl-C. The parent decides when jobs end.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {})
// Closing the database here would keep changes that the record may lack.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
process.on('message', (message: Job | Keep) => {
  const reply = handle(message)
  sendToParent?.({ reply, isSpent: process.memoryUsage.rss() > SPENT_BYTES } satisfies Answer)
})
await once(watchdog, 'message')
sendToParent?.(READY)
