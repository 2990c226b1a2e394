import { availableParallelism } from 'node:os'
import { createFairQueue, type FairQueue } from '../../../../lib/fair-queue.ts'
import { createThreadPool, type ThreadPool } from '../../../../lib/threads/pool.ts'
import type { GrepAnswer, GrepJob } from './job.ts'

/** Threads that match tenants' patterns. */
export type GrepThreads = ThreadPool<GrepJob, GrepAnswer>

export const createGrepThreads = (): GrepThreads =>
  createThreadPool({
    file: new URL('./worker.ts', import.meta.url),
    maxThreads: Math.max(2, Math.floor(availableParallelism() / 2)),
    waitMs: 30_000,
    resourceLimits: { maxOldGenerationSizeMb: 192, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
  })

/** Maximum number of concurrent searches in a process. Each has two pieces of files in memory. */
const GREPS_AT_ONCE = 4
const WAIT_MS = 10_000

export const createGrepSlots = (): FairQueue => createFairQueue(GREPS_AT_ONCE, WAIT_MS)
