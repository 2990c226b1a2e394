import type { Agent } from '../../contract/agents.ts'
import { containsText } from '../../lib/contains-text.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { Deps } from '../conversation/deps.ts'
import type { Actor } from '../kit/actor.ts'
import { type PageStart, type Pages, pages } from '../kit/lists.ts'
import { isFull, pageBySizeSql, type SizedRow } from '../kit/page-by-size.ts'
import { presentAgents } from './present.ts'

const AGENTS_AT_ONCE = 20

type Found = SizedRow & { id: string; createdAt: Date }
type Wanted = { search?: string | undefined; status?: Agent['status'] | undefined }

/** Lists agents, newest first, by default active ones. `search` matches a part of the name or description. */
export const listAgents = (deps: Deps, actor: Actor, wanted: Wanted = {}): Pages<Agent> =>
  pages({
    atOnce: AGENTS_AT_ONCE,
    read: async (place: PageStart<Found>) => {
      const rows = await findPage(deps, actor, wanted, place)
      return { rows, hasMore: isFull(rows) || rows.length === place.take }
    },
    present: (rows) => readPage(deps, actor, wanted, rows),
  })

async function readPage(
  deps: Deps,
  { organizationId }: Actor,
  { status = 'active' }: Wanted,
  found: Found[],
): Promise<Agent[]> {
  const rows = await deps.db.agent.findMany({
    where: { organizationId, id: { in: found.map(({ id }) => id) }, status },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
  })
  return presentAgents(deps, organizationId, rows)
}

function findPage(
  deps: Deps,
  { organizationId }: Actor,
  { search, status = 'active' }: Wanted,
  { after, take }: PageStart<Found>,
): Promise<Found[]> {
  const order = Prisma.sql`created_at DESC, id DESC`
  const agents = Prisma.sql`
    SELECT * FROM agents WHERE organization_id = ${organizationId}::uuid AND status = ${status}::agent_status
      AND ${search === undefined ? Prisma.sql`true` : isFound(search)}
      AND ${after === undefined ? Prisma.sql`true` : isAfter(after)}
    ORDER BY ${order} LIMIT ${take}`
  const page = pageBySizeSql({
    found: agents,
    order,
    columns: Prisma.sql`id, created_at AS "createdAt"`,
    sized: ['description', 'system_prompt', 'capabilities', 'tools', 'output_schema'],
  })
  return deps.db.$queryRaw`SELECT * FROM ${page} AS page ORDER BY "createdAt" DESC, id DESC`
}

const isFound = (search: string): Prisma.Sql => {
  const pattern = `%${containsText(search).contains}%`
  return Prisma.sql`(name ILIKE ${pattern} OR description ILIKE ${pattern})`
}

const isAfter = ({ createdAt, id }: Found): Prisma.Sql =>
  Prisma.sql`(created_at, id) < (${createdAt}::timestamptz, ${id}::uuid)`
