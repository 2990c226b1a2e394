import type { Agent } from '../../contract/agents.ts'
import type { AgentId } from '../../contract/ids.ts'
import type { AgentCapabilityConfig, ToolDefinition } from '../../contract/tools.ts'
import { containsText } from '../../lib/contains-text.ts'
import { type Agent as AgentRow, Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../actor.ts'
import type { Deps } from '../deps.ts'
import { notFound } from '../errors.ts'
import { toId } from '../ids.ts'
import { presentUsage } from '../usage.ts'

const PAGE = 20
/** A page ends with the agent that passes this: one may be as large as a request. */
const PAGE_BYTES = 256 * 1024

/** `bytes`: of the page up to and with this agent. */
type Place = { id: string; createdAt: Date; bytes: bigint }

/** The active agents, newest first, page by page; with `search` those that have it in name or description. */
export async function* listAgents(deps: Deps, actor: Actor, search?: string): AsyncGenerator<Agent[]> {
  let wanted = PAGE
  let after: Place | undefined
  do {
    const places: Place[] = await findPage(deps, actor, { search, after, take: wanted })
    const last = places.at(-1)
    const isFull = last !== undefined && last.bytes >= PAGE_BYTES
    if (last !== undefined) yield await readPage(deps, actor, places)
    after = isFull || places.length === wanted ? last : undefined
    // Large ones are looked for in small numbers.
    wanted = Math.min(PAGE, 2 * places.length)
  } while (after !== undefined)
}

async function readPage(deps: Deps, { organizationId }: Actor, places: Place[]): Promise<Agent[]> {
  const rows = await deps.db.agent.findMany({
    where: { organizationId, id: { in: places.map(({ id }) => id) }, status: 'active' },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
  })
  return rows.map(presentAgent)
}

type Page = { search: string | undefined; after: Place | undefined; take: number }

const findPage = (deps: Deps, { organizationId }: Actor, { search, after, take }: Page): Promise<Place[]> =>
  deps.db.$queryRaw<Place[]>`
    SELECT id, created_at AS "createdAt", bytes FROM (
      SELECT *, sum(size) OVER (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING) AS bytes FROM (
        SELECT id, created_at, coalesce(octet_length(description), 0) + octet_length(system_prompt)
          + octet_length(capabilities::text) + octet_length(tools::text) AS size
        FROM (
          SELECT * FROM agents WHERE organization_id = ${organizationId}::uuid AND status = 'active'
            AND ${search === undefined ? Prisma.sql`true` : isFound(search)}
            AND ${after === undefined ? Prisma.sql`true` : isAfter(after)}
          ORDER BY created_at DESC, id DESC LIMIT ${take}
        ) AS found
      ) AS sized
    ) AS measured WHERE bytes - size < ${PAGE_BYTES} ORDER BY created_at DESC, id DESC`

const isFound = (search: string): Prisma.Sql => {
  const pattern = `%${containsText(search).contains}%`
  return Prisma.sql`(name ILIKE ${pattern} OR description ILIKE ${pattern})`
}

const isAfter = ({ createdAt, id }: Place): Prisma.Sql =>
  Prisma.sql`(created_at, id) < (${createdAt}::timestamptz, ${id}::uuid)`

/** Throws `not_found`. */
export const getAgent = async (deps: Deps, actor: Actor, id: AgentId): Promise<Agent> =>
  presentAgent(await requireAgent(deps, actor, id))

export async function requireAgent(deps: Deps, actor: Actor, id: AgentId): Promise<AgentRow> {
  const row = await findAgent(deps, actor, id)
  if (!row) throw notFound('Agent')
  return row
}

export const findAgent = (deps: Deps, { organizationId }: Actor, id: string): Promise<AgentRow | null> =>
  deps.db.agent.findUnique({ where: { organizationId_id: { organizationId, id } } })

export const presentAgent = (row: AgentRow): Agent => ({
  id: toId('agent', row.id),
  name: row.name,
  description: row.description,
  system_prompt: row.systemPrompt,
  default_model_id: row.defaultModelId && toId('model', row.defaultModelId),
  tags: row.tags,
  // Written by write.ts only.
  capabilities: row.capabilities as AgentCapabilityConfig[],
  tools: row.tools as ToolDefinition[],
  status: row.status,
  usage: presentUsage(row),
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})
