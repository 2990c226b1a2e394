import { createThreadPool, type ThreadPool } from '../../../../lib/threads/pool.ts'
import type { SchemaJob } from './schema-worker.ts'

/** Threads that compile and run tenants' schemas. An answer is a problem, or undefined. */
export type SchemaThreads = ThreadPool<SchemaJob, string | undefined>

export const createSchemaThreads = (): SchemaThreads =>
  createThreadPool({
    file: new URL('./schema-worker.ts', import.meta.url),
    maxThreads: 2,
    waitMs: 10_000,
    resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
  })
