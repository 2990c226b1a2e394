import type { Agent, AgentSummary } from '../../contract/agents.ts'
import { containsText } from '../../lib/contains-text.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { Deps } from '../conversation/deps.ts'
import type { Actor } from '../kit/actor.ts'
import { type PageStart, type Pages, pages } from '../kit/lists.ts'
import { isFull, pageBySizeSql, type SizedRow } from '../kit/page-by-size.ts'
import { presentAgents, presentSummary, type SummaryRow } from './present.ts'

const AGENTS_AT_ONCE = 20
const SUMMARIES_AT_ONCE = 100
/** Characters of a description that a summary has. */
const DESCRIPTION = 300

type Found = SizedRow & { id: string; createdAt: Date }
type Filter = { search?: string | undefined; status?: Agent['status'] | undefined }
type Wanted = Filter & { id?: string[] | undefined; limit: number; offset: number }

/** Lists agents, newest first, by default active ones. `search` matches a part of the name or description. */
export const listAgents = (deps: Deps, actor: Actor, wanted: Filter = {}): Pages<Agent> =>
  pages({
    atOnce: AGENTS_AT_ONCE,
    read: async (place: PageStart<Found>) => {
      const rows = await findPage(deps, actor, wanted, place)
      return { rows, hasMore: isFull(rows) || rows.length === place.take }
    },
    present: (rows) => readPage(deps, actor, wanted, rows),
  })

/** Lists what lists show of agents, newest first: by default active ones, or those with the given ids in any status. */
export const listSummaries = (deps: Deps, actor: Actor, { limit, offset, ...wanted }: Wanted): Pages<AgentSummary> =>
  pages({
    atOnce: SUMMARIES_AT_ONCE,
    limit,
    offset,
    read: async (place: PageStart<Found & SummaryRow>) => {
      const rows = await findSummaries(deps, actor, wanted, place)
      return { rows, hasMore: isFull(rows) || rows.length === place.take }
    },
    present: (rows) => rows.map(presentSummary),
  })

async function readPage(
  deps: Deps,
  { organizationId }: Actor,
  { status = 'active' }: Filter,
  found: Found[],
): Promise<Agent[]> {
  const rows = await deps.db.agent.findMany({
    where: { organizationId, id: { in: found.map(({ id }) => id) }, status },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
  })
  return presentAgents(deps, organizationId, rows)
}

const ORDER = Prisma.sql`created_at DESC, id DESC`

function findPage(
  deps: Deps,
  actor: Actor,
  { search, status = 'active' }: Filter,
  place: PageStart<Found>,
): Promise<Found[]> {
  const page = pageBySizeSql({
    found: agentsSql(actor, { search, status }, place),
    order: ORDER,
    columns: Prisma.sql`id, created_at AS "createdAt"`,
    sized: ['description', 'system_prompt', 'capabilities', 'tools', 'output_schema'],
  })
  return deps.db.$queryRaw`SELECT * FROM ${page} AS page ORDER BY "createdAt" DESC, id DESC`
}

function findSummaries(
  deps: Deps,
  actor: Actor,
  { search, id, status = id === undefined ? 'active' : undefined }: Omit<Wanted, 'limit' | 'offset'>,
  place: PageStart<Found>,
): Promise<(Found & SummaryRow)[]> {
  const page = pageBySizeSql({
    found: agentsSql(actor, { search, id, status }, place),
    order: ORDER,
    columns: Prisma.sql`id, created_at AS "createdAt", name, left(description, ${DESCRIPTION}) AS description, tags,
      status::text, version, default_model_id AS "defaultModelId", updated_at AS "updatedAt"`,
    sized: ['name', 'tags'],
  })
  return deps.db.$queryRaw`SELECT * FROM ${page} AS page ORDER BY "createdAt" DESC, id DESC`
}

/** Selects the next agents in their order. */
const agentsSql = (
  { organizationId }: Actor,
  { search, id, status }: Omit<Wanted, 'limit' | 'offset'>,
  { after, skip, take }: PageStart<Found>,
): Prisma.Sql => Prisma.sql`
  SELECT * FROM agents WHERE organization_id = ${organizationId}::uuid
    AND ${status === undefined ? Prisma.sql`true` : Prisma.sql`status = ${status}::agent_status`}
    AND ${id === undefined ? Prisma.sql`true` : Prisma.sql`id = ANY(${id}::uuid[])`}
    AND ${search === undefined ? Prisma.sql`true` : isFound(search)}
    AND ${after === undefined ? Prisma.sql`true` : isAfter(after)}
  ORDER BY ${ORDER} LIMIT ${take} OFFSET ${skip}`

const isFound = (search: string): Prisma.Sql => {
  const pattern = `%${containsText(search).contains}%`
  return Prisma.sql`(name ILIKE ${pattern} OR description ILIKE ${pattern})`
}

const isAfter = ({ createdAt, id }: Found): Prisma.Sql =>
  Prisma.sql`(created_at, id) < (${createdAt}::timestamptz, ${id}::uuid)`
