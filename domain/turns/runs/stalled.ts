import { Prisma } from '../../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { hasWorkerCallsSql } from '../worker-acts.ts'

/**
 * Returns the condition that the active turn `t` has had no event for too long, and waits for no agent, and for no worker of
 * its organization. Reads one event of each such turn, and its acts if it had none for so long.
 */
export function isStalledSql({ limits }: Deps): Prisma.Sql {
  const before = new Date(Date.now() - limits.turnStalledMs)
  return Prisma.sql`(t.status = 'active' AND t.finished_at IS NULL AND t.started_at < ${before} AND ${before} > (
    SELECT e.ts FROM events e WHERE e.session_id = t.session_id AND e.turn_id = t.id ORDER BY e.sequence DESC LIMIT 1
  ) AND NOT EXISTS (
    SELECT FROM events act WHERE act.turn_id = t.id AND ${hasWorkerCallsSql(Prisma.sql`act`)} AND NOT EXISTS (
      SELECT FROM events done WHERE done.turn_id = t.id AND done.type = 'act.completed' AND done.step = act.step
    )
  ))`
}

/** Returns which of the turns are stalled. */
export async function findStalled(deps: Deps, turns: { id: string; status: string }[]): Promise<Set<string>> {
  const active = turns.flatMap(({ id, status }) => (status === 'active' ? [id] : []))
  if (active.length === 0) return new Set()
  const rows = await deps.db.$queryRaw<{ id: string }[]>`
    SELECT t.id FROM turns t WHERE t.id = ANY (${active}::uuid[]) AND ${isStalledSql(deps)}`
  return new Set(rows.map(({ id }) => id))
}

/** Counts the stalled turns of all organizations. */
export async function countStalledTurns(deps: Deps): Promise<number> {
  const [row] = await deps.db.$queryRaw<{ count: number }[]>`
    SELECT count(*)::int AS count FROM turns t WHERE ${isStalledSql(deps)}`
  return row?.count ?? 0
}
