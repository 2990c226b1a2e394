import type { Session } from '../../contract/sessions.ts'
import type { Deps } from '../conversation/deps.ts'
import type { Actor } from '../kit/actor.ts'
import { readFiltered } from '../kit/filtered-reads.ts'
import { type Counted, counted } from '../kit/lists.ts'
import { findSessions, isFiltered, type SessionFilter } from './find.ts'
import { readSessions } from './read.ts'

type PageQuery = SessionFilter & { limit: number; offset: number }

/** Position of a page. `before` and `skip` locate its first unpinned session; they are null past the end. */
type SessionPageStart = { total: number; pinned: string[]; before: Date | null; skip: number | null }

/** Agent id of the counts over all agents; see SessionCount in prisma/schema.prisma. */
const ALL_AGENTS = '00000000-0000-0000-0000-000000000000'
/** Number of sessions read at once; a session and its agent may have megabytes. */
const SESSIONS_AT_ONCE = 20

/**
 * Returns a page of the organization's or of one agent's sessions: first the caller's pinned sessions, then the others,
 * both newest first.
 */
export async function listSessions(deps: Deps, actor: Actor, query: PageQuery): Promise<Counted<Session>> {
  const { limit, offset, ...filter } = query
  const found = isFiltered(filter)
    ? await readFiltered(deps, actor, (db) => findSessions(db, actor, filter, { limit, offset }))
    : await findAll(deps, actor, filter.agent_id, { limit, offset })
  return counted({ ...found, read: (ids) => readSessions(deps, actor, ids), atOnce: SESSIONS_AT_ONCE, offset, limit })
}

/** The cost does not depend on the number of sessions or the offset. */
async function findAll(
  deps: Deps,
  actor: Actor,
  agentId: string | undefined,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ ids: string[]; total: number }> {
  const place = await findPlace(deps, actor, agentId ?? ALL_AGENTS, offset)
  const pinned = place.pinned.slice(offset, offset + limit)
  const others = await findOthers(deps, actor, agentId, place, limit - pinned.length)
  return { ids: [...pinned, ...others], total: place.total }
}

async function findOthers(
  deps: Deps,
  { organizationId }: Actor,
  agentId: string | undefined,
  { before, skip, pinned }: SessionPageStart,
  take: number,
): Promise<string[]> {
  if (before === null || skip === null || take === 0) return []
  const rows = await deps.db.session.findMany({
    where: { organizationId, agentId, createdAt: { lt: before }, id: { notIn: pinned } },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
    select: { id: true },
    skip,
    take,
  })
  return rows.map(({ id }) => id)
}

/** Finds the position of a page. A separate statement, because the next one must be planned with a known limit. */
async function findPlace(
  deps: Deps,
  { organizationId, userId }: Actor,
  agentId: string,
  offset: number,
): Promise<SessionPageStart> {
  const [place] = await deps.db.$queryRaw<SessionPageStart[]>`
    WITH pinned AS MATERIALIZED (
      SELECT ARRAY(
        SELECT s.id FROM session_pins p JOIN sessions s ON s.id = p.session_id
        WHERE p.user_id = ${userId}::uuid AND s.organization_id = ${organizationId}::uuid
          AND (${agentId}::uuid = ${ALL_AGENTS}::uuid OR s.agent_id = ${agentId}::uuid)
        ORDER BY s.created_at DESC, s.id DESC
      ) AS ids
    )
    SELECT pinned.ids::text[] AS pinned, place.before, place.skip::int,
      (SELECT coalesce(sum(count), 0)::int FROM session_counts
        WHERE organization_id = ${organizationId}::uuid AND agent_id = ${agentId}::uuid AND seconds = 86400) AS total
    FROM pinned LEFT JOIN session_place(
      ${organizationId}::uuid, ${agentId}::uuid, pinned.ids, greatest(0, ${offset}::bigint - cardinality(pinned.ids))
    ) AS place ON true`
  if (place === undefined) throw new Error('The place of a page was not found.')
  return place
}
