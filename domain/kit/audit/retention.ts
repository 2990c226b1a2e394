import { deleteInBatches } from '../../../lib/delete-in-batches.ts'
import type { Deps } from '../deps.ts'

/** Deletes old entries and returns their number. 0 keeps all. Throws the signal's reason when it aborts. */
export const deleteOldEntries = async (deps: Deps, olderThanMs: number, signal: AbortSignal): Promise<number> =>
  olderThanMs === 0
    ? 0
    : deleteInBatches(
        signal,
        (limit) => deps.db.$executeRaw`
          DELETE FROM audit_entries WHERE id IN (
            SELECT id FROM audit_entries WHERE created_at < now() - make_interval(secs => ${olderThanMs / 1000})
            ORDER BY created_at LIMIT ${limit}
          )`,
      )
