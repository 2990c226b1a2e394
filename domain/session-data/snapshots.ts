import type { Deps } from './deps.ts'

/** Number of turns whose snapshots a session keeps. */
const MAX_TURNS = 100
const PAGE = 100
const FIRST = '00000000-0000-0000-0000-000000000000'

/**
 * Deletes the snapshots before the latest turns of each session, and older snapshots while all take more bytes than its files may.
 * Throws the signal's reason when it aborts.
 */
export async function deleteOldSnapshots(deps: Deps, signal: AbortSignal): Promise<void> {
  const read = (after: string) => deps.db.$queryRaw<{ id: string }[]>`
    SELECT id::text FROM sessions WHERE snapshots_since IS NOT NULL AND id > ${after}::uuid ORDER BY id LIMIT ${PAGE}`
  for (let page = await read(FIRST); page.length > 0; page = await read(page.at(-1)?.id ?? FIRST)) {
    for (const { id } of page) {
      signal.throwIfAborted()
      await deleteOf(deps, id)
    }
  }
}

/** A fork that has seen the earlier beginning holds a lock of the session until it has copied its data. */
async function deleteOf({ db, quotas }: Deps, id: string): Promise<void> {
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
  await db.$executeRaw`
    DELETE FROM session_snapshots x USING sessions s
    WHERE s.id = ${id}::uuid AND x.session_id = s.id AND x.stamp < s.snapshots_since`
}
