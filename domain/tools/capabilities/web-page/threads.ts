import { availableParallelism } from 'node:os'
import { createThreadPool, type ThreadPool } from '../../../../lib/threads/pool.ts'
import type { ConvertedPage, Page } from './worker.ts'

/** Threads that convert web pages to Markdown. */
export type WebPageThreads = ThreadPool<Page, ConvertedPage>

export const createWebPageThreads = (): WebPageThreads =>
  createThreadPool({
    file: new URL('./worker.ts', import.meta.url),
    maxThreads: Math.max(2, Math.floor(availableParallelism() / 2)),
    waitMs: 30_000,
    resourceLimits: { maxOldGenerationSizeMb: 384, maxYoungGenerationSizeMb: 64, stackSizeMb: 4 },
  })
