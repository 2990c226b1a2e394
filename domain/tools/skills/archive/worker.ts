import { serveJobs } from '../../../../lib/threads/worker.ts'
import type { ArchiveAnswer } from './archive.ts'
import { unpack } from './unpack.ts'

/** Entry point of a thread that unpacks archives of skills. */
serveJobs<Uint8Array, ArchiveAnswer>(unpack)
