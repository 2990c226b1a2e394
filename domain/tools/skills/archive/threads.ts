import { createFairQueue, type FairQueue } from '../../../../lib/fair-queue.ts'
import { createThreadPool, type ThreadPool } from '../../../../lib/threads/pool.ts'
import type { ArchiveAnswer } from './archive.ts'

/** Threads that unpack archives of skills. */
export type ArchiveThreads = ThreadPool<Uint8Array, ArchiveAnswer>

const MAX_THREADS = 2
const WAIT_MS = 30_000
/** Number of archives unpacked and stored at once, each up to 10 MiB. */
const STORED_AT_ONCE = 4

export const createArchiveThreads = (): ArchiveThreads =>
  createThreadPool({
    file: new URL('./worker.ts', import.meta.url),
    maxThreads: MAX_THREADS,
    waitMs: WAIT_MS,
    resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
  })

/** Creates the slots of a process for unpacking and storing archives. */
export const createArchiveSlots = (): FairQueue => createFairQueue(STORED_AT_ONCE, WAIT_MS)
