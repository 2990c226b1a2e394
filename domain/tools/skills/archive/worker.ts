import { serveJobs } from '../../../../lib/threads/worker.ts'
import type { ArchiveAnswer } from './archive.ts'
import { unpack } from './unpack.ts'

/** Program of a thread: unpacks archives of skills. */
serveJobs<Uint8Array, ArchiveAnswer>(unpack)
