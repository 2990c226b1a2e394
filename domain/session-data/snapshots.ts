import { warnRarely } from '../../lib/warn-rarely.ts'
import { toId } from '../kit/ids.ts'
import type { Deps } from './deps.ts'

/** Number of turns whose snapshots a session keeps. */
const MAX_TURNS = 100
/** Sessions looked at in a run, and snapshots deleted by a statement. */
const SESSIONS = 10_000
const BATCH = 1000
/** Time limit of a run in ms. The next run continues. */
const RUN_MS = 30_000

/**
 * Deletes the snapshots before the latest turns of each session, and older snapshots while all take more bytes than its files may.
 * Looks at the sessions in which something has happened, and at a few others, whose data may have changed without a turn; in any
 * order, so that no session is always too late. Throws the signal's reason when it aborts.
 */
export async function deleteOldSnapshots(deps: Deps, signal: AbortSignal): Promise<void> {
  const until = performance.now() + RUN_MS
  const sessions = await deps.db.$queryRaw<{ id: string }[]>`
    SELECT id::text FROM sessions s
    WHERE snapshots_since IS NOT NULL AND (updated_at > now() - interval '1 day' OR random() < 0.05)
      AND EXISTS (SELECT FROM session_snapshots WHERE session_id = s.id)
    ORDER BY random() LIMIT ${SESSIONS}`
  for (const { id } of sessions) {
    signal.throwIfAborted()
    if (performance.now() > until) return
    await deleteOf(deps, id, { until, signal }).catch((error: Error) => {
      signal.throwIfAborted()
      const fields = { session: toId('session', id), err: error.message }
      warnRarely(deps.log, fields, 'old snapshots not deleted; a later run will retry')
    })
  }
}

/** A fork that has seen the earlier beginning holds a lock of the session until it has copied its data. */
async function deleteOf(
  { db, quotas }: Deps,
  id: string,
  { until, signal }: { until: number; signal: AbortSignal },
): Promise<void> {
  await db.$executeRaw`
    WITH by_stamp AS (
      SELECT stamp, sum(coalesce((before ->> 'size_bytes')::bigint, octet_length(bytes), octet_length(before ->> 'value'), 0)) AS bytes
      FROM session_snapshots WHERE session_id = ${id}::uuid GROUP BY stamp
    ), newest_first AS (
      SELECT stamp, sum(bytes) OVER (ORDER BY stamp DESC) AS kept FROM by_stamp
    ), beginning AS (
      SELECT greatest(
        (SELECT 2 * input_sequence::bigint FROM turns WHERE session_id = ${id}::uuid
          ORDER BY input_sequence DESC OFFSET ${MAX_TURNS - 1} LIMIT 1),
        (SELECT max(stamp) + 1 FROM newest_first WHERE kept > ${quotas.files.maxTotalBytes})
      ) AS stamp
    ), locked AS (
      SELECT id FROM sessions WHERE id = ${id}::uuid FOR UPDATE SKIP LOCKED
    )
    UPDATE sessions s SET snapshots_since = beginning.stamp FROM beginning, locked
    WHERE s.id = locked.id AND s.snapshots_since < beginning.stamp`
  while ((await deleteBatch(db, id)) === BATCH && performance.now() < until) signal.throwIfAborted()
}

/** Notes the space of a deleted file's snapshot: nothing else may have the content. */
async function deleteBatch(db: Deps['db'], id: string): Promise<number> {
  const [deleted] = await db.$queryRaw<{ count: number }[]>`
    WITH gone AS (
      DELETE FROM session_snapshots WHERE ctid = ANY (ARRAY(
        SELECT x.ctid FROM session_snapshots x JOIN sessions s ON s.id = x.session_id
        WHERE s.id = ${id}::uuid AND x.stamp < s.snapshots_since LIMIT ${BATCH}
      )) RETURNING kind
    ), noted AS (
      INSERT INTO file_spaces_due (space_id)
      SELECT space_id FROM session_file_totals
      WHERE session_id = ${id}::uuid AND space_id IS NOT NULL AND EXISTS (SELECT FROM gone WHERE kind = 'file')
      ON CONFLICT (space_id) DO UPDATE SET noted_at = clock_timestamp()
    )
    SELECT count(*)::int AS count FROM gone`
  return deleted?.count ?? 0
}
