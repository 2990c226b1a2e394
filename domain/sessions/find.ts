import type { AgentId } from '../../contract/kit/ids.ts'
import { MAX_COUNTED, type Session } from '../../contract/sessions.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import { invalid } from '../kit/errors.ts'
import { allOf, checkTimes } from '../kit/filters.ts'
import { checkSearch, MAX_FOUND, matchesSql } from '../kit/search.ts'

/** Filters of sessions; absent ones match all. */
export type SessionFilter = {
  agent_id?: AgentId | undefined
  status?: Session['status'] | undefined
  last_turn_status?: NonNullable<Session['last_turn_status']> | undefined
  tag?: string[] | undefined
  from?: Date | undefined
  to?: Date | undefined
  search?: string | undefined
}

/** Ids of a page of sessions, and how many sessions match, up to MAX_COUNTED. */
type Found = { ids: string[]; total: number }

type Db = Prisma.TransactionClient

export const isFiltered = ({ agent_id: _, ...others }: SessionFilter): boolean =>
  Object.values(others).some((one) => one !== undefined)

/** Finds sessions by filters, the caller's pinned ones first, then the newest. Throws `invalid`. */
export async function findSessions(
  db: Db,
  actor: Actor,
  filter: SessionFilter,
  { limit, offset }: { limit: number; offset: number },
): Promise<Found> {
  checkTimes(filter)
  if (offset > MAX_COUNTED) throw invalid(`offset: must be at most ${MAX_COUNTED} with filters`)
  const where = await conditionsOf(db, actor, filter)
  const pinned = idsOf(
    await db.$queryRaw`
      SELECT s.id FROM session_pins p JOIN sessions s ON s.id = p.session_id
      WHERE p.user_id = ${actor.userId}::uuid AND ${where} ORDER BY s.created_at DESC, s.id DESC`,
  )
  const shown = pinned.slice(offset, offset + limit)
  const others = idsOf(
    await db.$queryRaw`
      SELECT s.id FROM sessions s WHERE ${where} AND s.id <> ALL (${pinned}::uuid[])
      ORDER BY s.created_at DESC, s.id DESC LIMIT ${limit - shown.length} OFFSET ${Math.max(0, offset - pinned.length)}`,
  )
  const [counted] = await db.$queryRaw<{ total: number }[]>`
    SELECT count(*)::int AS total FROM (SELECT FROM sessions s WHERE ${where} LIMIT ${MAX_COUNTED}) AS matching`
  return { ids: [...shown, ...others], total: counted?.total ?? 0 }
}

const idsOf = (rows: { id: string }[]): string[] => rows.map(({ id }) => id)

/** Returns the conditions on `sessions s`. */
async function conditionsOf(db: Db, actor: Actor, filter: SessionFilter): Promise<Prisma.Sql> {
  const { organizationId } = actor
  const { agent_id, status, last_turn_status, tag, from, to, search } = filter
  const conditions = [
    Prisma.sql`s.organization_id = ${organizationId}::uuid`,
    agent_id && Prisma.sql`s.agent_id = ${agent_id}::uuid`,
    status && Prisma.sql`s.status = ${status}::session_status AND ${hasTurnsOf(organizationId, status)}`,
    last_turn_status && Prisma.sql`s.last_turn_status = ${last_turn_status}::turn_status`,
    tag &&
      Prisma.sql`s.tags <> '{}' AND s.tags || s.organization_id::text @> ${[...tag, organizationId]}::text[] AND s.tags @> ${tag}::text[]`,
    from && Prisma.sql`s.created_at >= ${from}`,
    to && Prisma.sql`s.created_at < ${to}`,
    search && (await hasTextSql(db, organizationId, search)),
  ]
  return allOf(conditions)
}

/** Sessions with unfinished turns are found by these: an index of sessions by status would cost each turn more. */
function hasTurnsOf(organizationId: string, status: Session['status']): Prisma.Sql {
  if (status === 'started' || status === 'idle') return Prisma.sql`true`
  return Prisma.sql`s.id = ANY (ARRAY(
    SELECT session_id FROM turns
    WHERE organization_id = ${organizationId}::uuid AND status IN ('queued', 'active', 'waiting')
  ))`
}

async function hasTextSql(db: Db, organizationId: string, search: string): Promise<Prisma.Sql> {
  await checkSearch(db, search)
  const matches = matchesSql(organizationId, search, 'in')
  const texts = await db.$queryRaw<{ id: string }[]>`
    SELECT session_id AS id FROM session_texts WHERE ${matches} LIMIT ${MAX_FOUND + 1}`
  // OFFSET keeps Postgres from joining, which would read all matches for one page.
  return texts.length > MAX_FOUND
    ? Prisma.sql`EXISTS (SELECT FROM session_texts WHERE session_id = s.id AND ${matches} OFFSET 0)`
    : Prisma.sql`s.id = ANY (${[...new Set(idsOf(texts))]}::uuid[])`
}
