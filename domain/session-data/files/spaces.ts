import { warnRarely } from '../../../lib/warn-rarely.ts'
import { toId } from '../../kit/ids.ts'
import type { Deps } from '../deps.ts'

/** Spaces read at once, unused contents found at once, and chunks deleted by a statement. */
const PAGE = 100
const CONTENTS = 10_000
const BATCH = 2000
/** Time limit of a run in ms. The next run continues. */
const RUN_MS = 30_000

type Run = { until: number; signal: AbortSignal }

/**
 * Deletes the contents that no file of their space has, now or in a snapshot. A space in which that fails comes last from then
 * on. Throws the signal's reason when it aborts.
 */
export async function deleteUnusedContents(deps: Deps, signal: AbortSignal): Promise<void> {
  const run = { until: performance.now() + RUN_MS, signal }
  const [begun] = await deps.db.$queryRaw<{ at: string }[]>`SELECT clock_timestamp()::text AS at`
  const read = () => deps.db.$queryRaw<{ id: string; notedAt: string }[]>`
    SELECT space_id::text AS id, noted_at::text AS "notedAt" FROM file_spaces_due
    WHERE noted_at < ${begun?.at}::timestamptz ORDER BY noted_at LIMIT ${PAGE}`
  for (let page = await read(); page.length > 0; page = await read()) {
    for (const { id, notedAt } of page) {
      if (!(await sweepSpace(deps, id, run))) return
      // Unless another content has been given up since.
      await deps.db.$executeRaw`
        DELETE FROM file_spaces_due WHERE space_id = ${id}::uuid AND noted_at = ${notedAt}::timestamptz`
    }
  }
}

/** Returns false when the time is over. */
async function sweepSpace(deps: Deps, space: string, run: Run): Promise<boolean> {
  try {
    return await deleteUnused(deps, space, run)
  } catch (error) {
    run.signal.throwIfAborted()
    const fields = { space: toId('session', space), err: (error as Error).message }
    warnRarely(deps.log, fields, 'unused contents of files not deleted; a later run will retry')
    await deps.db.$executeRaw`UPDATE file_spaces_due SET noted_at = clock_timestamp() WHERE space_id = ${space}::uuid`
    return performance.now() < run.until
  }
}

/**
 * Deletes the unused contents of a space. A file gets an existing content only from another file, under the lock of the totals,
 * so an unused content stays unused. Returns false when the time is over.
 */
async function deleteUnused({ db }: Deps, space: string, { until, signal }: Run): Promise<boolean> {
  const find = () => db.$queryRaw<{ id: string }[]>`
    WITH used AS MATERIALIZED (
      SELECT f.content_id FROM session_file_totals t JOIN session_files f USING (session_id) WHERE t.space_id = ${space}::uuid
      UNION
      SELECT (x.before ->> 'content_id')::uuid FROM session_file_totals t JOIN session_snapshots x USING (session_id)
      WHERE t.space_id = ${space}::uuid AND x.kind = 'file'
    )
    SELECT DISTINCT c.content_id::text AS id FROM session_file_chunks c
    WHERE c.session_id = ${space}::uuid AND NOT EXISTS (SELECT FROM used WHERE used.content_id = c.content_id) LIMIT ${CONTENTS}`
  const remove = (contents: string[]) => db.$executeRaw`
    DELETE FROM session_file_chunks WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM session_file_chunks
      WHERE session_id = ${space}::uuid AND content_id = ANY (${contents}::uuid[]) LIMIT ${BATCH}
    ))`
  for (;;) {
    const contents = (await find()).map(({ id }) => id)
    do {
      signal.throwIfAborted()
      if (performance.now() > until) return false
    } while ((await remove(contents)) === BATCH)
    if (contents.length < CONTENTS) return true
  }
}

/** Whether other sessions use the contents in the space of a deleted session. */
export async function isSharedSpace({ db }: Deps, sessionId: string): Promise<boolean> {
  return (await db.sessionFileTotals.count({ where: { spaceId: sessionId } })) > 0
}
