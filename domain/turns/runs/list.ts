import type { Turn } from '../../../contract/turns.ts'
import { Prisma, TurnStatus } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { readFiltered } from '../../kit/filtered-reads.ts'
import { checkTimes } from '../../kit/filters.ts'
import { inParts, type Pages } from '../../kit/lists.ts'
import type { Deps } from '../deps.ts'
import { readTurns } from '../read.ts'
import { fromCursor, type RunOrder, type RunPlace, toCursor } from './cursor.ts'
import { type Conditions, conditionsOf, isDirect, isRunSql, type RunFilter, statusesOf } from './filter.ts'

type Page = { order: RunOrder; after?: string | undefined; limit: number; offset: number }

/** Turns read at once; a waiting one may have large calls. */
const TURNS_AT_ONCE = 20

/** Lists the organization's turns. `next` is the cursor of the next page, null at the end. Throws `invalid`. */
export async function listRuns(
  deps: Deps,
  actor: Actor,
  { order, after, limit, offset, ...filter }: RunFilter & Page,
): Promise<{ pages: Pages<Turn>; next: string | null }> {
  checkTimes(filter)
  const place = after === undefined ? undefined : fromCursor(order, after)
  const find = async (db: Prisma.TransactionClient) => {
    const conditions = await conditionsOf(deps, db, actor, filter)
    const found =
      order === 'longest'
        ? longestSql(filter, conditions, place)
        : newestSql(filter, conditions, place, limit + offset + 1)
    return db.$queryRaw<RunPlace[]>`${found} LIMIT ${limit + 1} OFFSET ${offset}`
  }
  const places = await (isDirect(filter) ? find(deps.db) : readFiltered(deps, actor, find))
  const last = places[limit - 1]
  return {
    pages: inParts({
      ids: places.slice(0, limit).map(({ id }) => id),
      read: async (ids) => {
        const turns = await readTurns(deps, actor.organizationId, ids)
        return ids.flatMap((id) => turns.get(id) ?? [])
      },
      atOnce: TURNS_AT_ONCE,
    }),
    next: last === undefined || places.length <= limit ? null : toCursor(order, last),
  }
}

/**
 * Each status has its part of an index, which is in order, so the first `take` of each are read and sorted. A merge by
 * Postgres itself would do, but it may choose to sort all of them. Turns of one session, with one error code or found
 * by a search are few, and indexes of their own lead to them.
 */
function newestSql(
  filter: RunFilter,
  { sql, found }: Conditions,
  place: RunPlace | undefined,
  take: number,
): Prisma.Sql {
  const isFew = found !== undefined || Boolean(filter.session_id) || Boolean(filter.error_code)
  const statuses = statusesOf(filter, Object.values(TurnStatus))
  const isAfter = place ? Prisma.sql`AND (t.created_at, t.id) < (${place.at}, ${place.id}::uuid)` : Prisma.empty
  const parts = (isFew || statuses.length === 0 ? [statuses] : statuses.map((one) => [one])).map(
    (some) => Prisma.sql`(
      SELECT t.id, t.created_at AS at FROM turns t WHERE ${sql} AND ${isRunSql} AND ${isOneOf(some)} ${isAfter}
      ORDER BY t.created_at DESC, t.id DESC LIMIT ${take})`,
  )
  return Prisma.sql`SELECT id, at FROM (${Prisma.join(parts, ' UNION ALL ')}) AS t ORDER BY at DESC, id DESC`
}

function longestSql(filter: RunFilter, { sql }: Conditions, place: RunPlace | undefined): Prisma.Sql {
  const isStatus = isOneOf(statusesOf(filter, ['active', 'waiting']))
  const isAfter = place ? Prisma.sql`AND (t.started_at, t.id) > (${place.at}, ${place.id}::uuid)` : Prisma.empty
  return Prisma.sql`
    SELECT t.id, t.started_at AS at FROM turns t
    WHERE ${sql} AND ${isStatus} AND t.finished_at IS NULL AND t.started_at IS NOT NULL ${isAfter}
    ORDER BY t.started_at, t.id`
}

/** With literals: for a parameter, Postgres would not plan by the status. */
const isOneOf = (statuses: TurnStatus[]): Prisma.Sql =>
  statuses.length === 0
    ? Prisma.sql`false`
    : Prisma.sql`t.status IN (${Prisma.raw(statuses.map((status) => `'${status}'`).join(', '))})`
