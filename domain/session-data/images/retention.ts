import { deleteInBatches } from '../../../lib/delete-in-batches.ts'
import type { Deps } from '../deps.ts'

/** Age in ms from which an unfinished upload counts as abandoned. No upload takes a quarter of it. */
const ABANDONED_MS = 60 * 60_000

/** Number of uploads deleted by one statement: 400 MiB at most. */
const UPLOADS = 20

/**
 * Deletes the abandoned uploads of killed processes. Returns their number. Throws the signal's reason when it aborts.
 */
export const deleteAbandonedUploads = (deps: Deps, signal: AbortSignal): Promise<number> =>
  deleteInBatches(
    signal,
    (limit) => deps.db.$executeRaw`
      DELETE FROM images WHERE id IN (
        SELECT id FROM images
        WHERE completed_at IS NULL AND created_at < now() - make_interval(secs => ${ABANDONED_MS / 1000})
        LIMIT ${limit} FOR UPDATE SKIP LOCKED
      )`,
    UPLOADS,
  )
