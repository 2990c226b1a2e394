import type { Deps } from '../deps.ts'
import { removeSession } from './delete-session.ts'

const PAGE = 100
/** Time limit of a run in ms. The next run continues. */
const RUN_MS = 2 * 60_000

type OldSession = { id: string; organizationId: string }

/**
 * Deletes the sessions in which nothing has happened for `olderThanMs`, as their users would; 0 keeps all. Sessions that
 * somebody has pinned, that wait for their client, or that a schedule posts to are kept. Throws the signal's reason when
 * it aborts.
 */
export async function deleteOldSessions(deps: Deps, olderThanMs: number, signal: AbortSignal): Promise<void> {
  if (olderThanMs === 0) return
  const until = Date.now() + RUN_MS
  for (;;) {
    const old = await deps.db.$queryRaw<OldSession[]>`
      SELECT id, organization_id AS "organizationId" FROM sessions s
      WHERE updated_at < now() - make_interval(secs => ${olderThanMs / 1000})
        AND NOT EXISTS (SELECT FROM session_pins WHERE session_id = s.id)
        AND NOT EXISTS (SELECT FROM turns WHERE session_id = s.id AND finished_at IS NULL)
        AND NOT EXISTS (SELECT FROM schedules WHERE session_id = s.id AND deleted_at IS NULL AND enabled)
      LIMIT ${PAGE}`
    for (const { id, organizationId } of old) {
      signal.throwIfAborted()
      if (Date.now() > until) return
      await removeSession(deps, organizationId, id)
    }
    if (old.length < PAGE) return
  }
}
