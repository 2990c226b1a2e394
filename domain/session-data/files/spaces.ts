import type { Deps } from '../deps.ts'

/** Spaces looked at in a run, and chunks deleted by a statement. */
const SPACES = 100
const BATCH = 2000

/**
 * Deletes the contents that no file of their space has, now or in a snapshot. A file gets an existing content only from another
 * file, under the lock of the totals, so an unused content stays unused. Throws the signal's reason when it aborts.
 */
export async function deleteUnusedContents(deps: Deps, signal: AbortSignal): Promise<void> {
  const due = await deps.db.$queryRaw<{ id: string; notedAt: string }[]>`
    SELECT space_id::text AS id, noted_at::text AS "notedAt" FROM file_spaces_due ORDER BY noted_at LIMIT ${SPACES}`
  for (const { id, notedAt } of due) {
    do signal.throwIfAborted()
    while ((await deleteUnused(deps, id)) === BATCH)
    // Unless another content has been given up since.
    await deps.db.$executeRaw`
      DELETE FROM file_spaces_due WHERE space_id = ${id}::uuid AND noted_at = ${notedAt}::timestamptz`
  }
}

const deleteUnused = ({ db }: Deps, space: string): Promise<number> => db.$executeRaw`
  WITH used AS MATERIALIZED (
    SELECT f.content_id FROM session_file_totals t JOIN session_files f USING (session_id) WHERE t.space_id = ${space}::uuid
    UNION
    SELECT (x.before ->> 'content_id')::uuid FROM session_file_totals t JOIN session_snapshots x USING (session_id)
    WHERE t.space_id = ${space}::uuid AND x.kind = 'file'
  )
  DELETE FROM session_file_chunks WHERE ctid = ANY (ARRAY(
    SELECT c.ctid FROM session_file_chunks c
    WHERE c.session_id = ${space}::uuid AND NOT EXISTS (SELECT FROM used WHERE used.content_id = c.content_id) LIMIT ${BATCH}
  ))`

/** Whether other sessions use the contents in the space of a deleted session. */
export async function isSharedSpace({ db }: Deps, sessionId: string): Promise<boolean> {
  return (await db.sessionFileTotals.count({ where: { spaceId: sessionId } })) > 0
}
