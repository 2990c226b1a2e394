import { warnRarely } from '../../../lib/warn-rarely.ts'
import { Prisma } from '../../../prisma/generated/client.ts'
import { firstUuidOf, toId } from '../../kit/ids.ts'
import type { Deps } from '../deps.ts'
import { removeSession } from './delete-session.ts'

/** Number of sessions that one statement looks at. */
const PAGE = 500
/** Time limit of a run in ms. The next run continues. */
const RUN_MS = 60_000
const FIRST = '00000000-0000-0000-0000-000000000000'

type Looked = { id: string; organizationId: string; isOld: boolean }

/**
 * Deletes the sessions in which nothing has happened for `olderThanMs`, as their users would; 0 keeps all. Sessions that
 * somebody has pinned, that wait for their client, or that a schedule posts to are kept, and so are sessions whose
 * files, databases, values or secrets have changed. Throws the signal's reason when it aborts.
 */
export async function deleteOldSessions(deps: Deps, olderThanMs: number, signal: AbortSignal): Promise<void> {
  if (olderThanMs === 0) return
  const until = performance.now() + RUN_MS
  const isOld = isOldSql(olderThanMs)
  const lookFrom = (after: string) => deps.db.$queryRaw<Looked[]>`
    WITH page AS (
      SELECT id FROM sessions WHERE id > ${after}::uuid AND id < ${firstUuidOf(Date.now() - olderThanMs)}::uuid
      ORDER BY id LIMIT ${PAGE}
    )
    SELECT s.id, s.organization_id AS "organizationId", ${isOld} AS "isOld" FROM sessions s JOIN page USING (id) ORDER BY s.id`
  for (let page = await lookFrom(FIRST); page.length > 0; page = await lookFrom(page.at(-1)?.id ?? FIRST)) {
    for (const { id, organizationId, isOld: wasOld } of page) {
      signal.throwIfAborted()
      if (performance.now() > until) return
      if (!wasOld) continue
      await removeSession(deps, organizationId, id, (db) => isStillOld(db, id, isOld)).catch((error: Error) => {
        const session = toId('session', id)
        warnRarely(deps.log, { session, err: error.message }, 'old session not deleted; the next run will retry')
      })
    }
  }
}

const isOldSql = (olderThanMs: number) => {
  const cutoff = Prisma.sql`now() - make_interval(secs => ${olderThanMs / 1000})`
  const changed = ['session_files', 'session_databases', 'session_values', 'session_secrets'].map(
    (table) =>
      Prisma.sql`EXISTS (SELECT FROM ${Prisma.raw(table)} WHERE session_id = s.id AND updated_at >= ${cutoff})`,
  )
  return Prisma.sql`(
    s.updated_at < ${cutoff}
    AND NOT EXISTS (SELECT FROM session_pins WHERE session_id = s.id)
    AND NOT EXISTS (SELECT FROM turns WHERE session_id = s.id AND finished_at IS NULL)
    AND NOT EXISTS (SELECT FROM schedules WHERE session_id = s.id AND deleted_at IS NULL AND enabled)
    AND NOT (${Prisma.join(changed, ' OR ')}))`
}

/**
 * Looks again at a session that is about to be deleted: it may have been used since. The lock lets nobody refer to it
 * from then on.
 */
async function isStillOld(db: Prisma.TransactionClient, id: string, isOld: Prisma.Sql): Promise<boolean> {
  await db.$queryRaw`SELECT 1 FROM sessions WHERE id = ${id}::uuid FOR UPDATE`
  const [row] = await db.$queryRaw<{ isOld: boolean }[]>`
    SELECT ${isOld} AS "isOld" FROM sessions s WHERE id = ${id}::uuid`
  return row?.isOld ?? false
}
