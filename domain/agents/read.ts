import type { Agent } from '../../contract/agents.ts'
import type { AgentCapabilityConfig, ToolDefinition } from '../../contract/tools.ts'
import type { Agent as AgentRow } from '../../prisma/generated/client.ts'
import type { Deps, Scope } from '../deps.ts'
import { notFound } from '../errors.ts'
import { toId, toUuid } from '../ids.ts'
import { containing } from '../search.ts'
import { presentUsage } from '../usage.ts'

/** An agent may be as large as a request, so few are held at once. */
const PAGE = 20

/** The active agents, newest first, page by page; with `search` those that have it in name or description. */
export async function* listAgents(deps: Deps, scope: Scope, search?: string): AsyncGenerator<Agent[]> {
  for (let page = await readPage(deps, scope, search); page.length > 0; ) {
    yield page.map(presentAgent)
    if (page.length < PAGE) return
    page = await readPage(deps, scope, search, page.at(-1))
  }
}

function readPage(deps: Deps, scope: Scope, search?: string, after?: AgentRow): Promise<AgentRow[]> {
  const contains = search === undefined ? undefined : containing(search)
  return deps.db.agent.findMany({
    where: {
      organizationId: scope.organizationId,
      status: 'active',
      AND: [
        contains === undefined ? {} : { OR: [{ name: contains }, { description: contains }] },
        after === undefined
          ? {}
          : {
              // The bound by itself is what the index is entered with.
              createdAt: { lte: after.createdAt },
              OR: [{ createdAt: { lt: after.createdAt } }, { id: { lt: after.id } }],
            },
      ],
    },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
    take: PAGE,
  })
}

/** Throws `not_found`. */
export const getAgent = async (deps: Deps, scope: Scope, id: string): Promise<Agent> =>
  presentAgent(await requireAgent(deps, scope, id))

export async function requireAgent(deps: Deps, scope: Scope, id: string): Promise<AgentRow> {
  const row = await findAgent(deps, scope, toUuid(id))
  if (!row) throw notFound('Agent')
  return row
}

export const findAgent = (deps: Deps, { organizationId }: Scope, uuid: string): Promise<AgentRow | null> =>
  deps.db.agent.findUnique({ where: { organizationId_id: { organizationId, id: uuid } } })

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
