import type { TurnCounts } from '../../../contract/runs.ts'
import { Prisma, TurnStatus } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { readFiltered } from '../../kit/filtered-reads.ts'
import { checkTimes } from '../../kit/filters.ts'
import type { Deps } from '../deps.ts'
import { conditionsOf, type RunFilter, statusesOf } from './filter.ts'
import { isStalledSql } from './stalled.ts'

const NONE: TurnCounts = { queued: 0, active: 0, waiting: 0, completed: 0, failed: 0, cancelled: 0, stalled: 0 }

/** Counts the organization's turns in each status, exactly, by their indexes. Throws `invalid`, `unprocessable`. */
export async function countRuns(deps: Deps, actor: Actor, filter: RunFilter): Promise<TurnCounts> {
  checkTimes(filter)
  return readFiltered(deps, actor, async (db) => {
    const { sql } = await conditionsOf(deps, db, actor, filter)
    const statuses = statusesOf(filter, Object.values(TurnStatus))
    const isCounted = Prisma.sql`${sql} AND t.status = ANY (${statuses}::turn_status[])`
    // The other indexes do not tell which turns forks have copied, so these are subtracted.
    const counts = await db.$queryRaw<{ status: TurnStatus; count: number }[]>`
      SELECT status, sum(count)::int AS count FROM (
        SELECT t.status, count(*) AS count FROM turns t WHERE ${isCounted} GROUP BY t.status
        UNION ALL
        SELECT t.status, -count(*) FROM turns t WHERE t.is_copy AND ${isCounted} GROUP BY t.status
      ) AS counted GROUP BY status`
    const stalled = statuses.includes('active') ? await countStalled(deps, db, sql) : 0
    return { ...NONE, ...Object.fromEntries(counts.map(({ status, count }) => [status, count])), stalled }
  })
}

async function countStalled(deps: Deps, db: Prisma.TransactionClient, sql: Prisma.Sql): Promise<number> {
  const [row] = await db.$queryRaw<{ count: number }[]>`
    SELECT count(*)::int AS count FROM turns t WHERE ${sql} AND ${isStalledSql(deps)}`
  return row?.count ?? 0
}
