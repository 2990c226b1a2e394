import { createThreadPool, type ThreadPool } from '../../../lib/threads/pool.ts'
import type { YamlAnswer } from './parse.ts'

/** Threads that read untrusted YAML. */
export type DocumentThreads = ThreadPool<string, YamlAnswer>

export const createDocumentThreads = (): DocumentThreads =>
  createThreadPool({
    file: new URL('./worker.ts', import.meta.url),
    maxThreads: 2,
    waitMs: 10_000,
    resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
  })
