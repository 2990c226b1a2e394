import { deleteInBatches } from '../../../lib/delete-in-batches.ts'
import type { Deps } from '../deps.ts'

/** Deletes expired invitations and returns their number. Throws the signal's reason when it aborts. */
export const deleteOldInvitations = (deps: Deps, signal: AbortSignal): Promise<number> =>
  deleteInBatches(
    signal,
    (limit) => deps.db.$executeRaw`
      DELETE FROM invitations WHERE id IN (
        SELECT id FROM invitations WHERE expires_at < now() ORDER BY expires_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
      )`,
  )

/** Deletes the seeds of requests too old to be repeated. */
export async function forgetInvitationSeeds(deps: Deps, olderThanMs: number): Promise<void> {
  await deps.db.$executeRaw`
    UPDATE invitations SET request_id = NULL
    WHERE request_id IS NOT NULL AND created_at < now() - make_interval(secs => ${olderThanMs / 1000})`
}
