import { AgentId } from '../../contract/kit/ids.ts'
import type { Deps } from '../conversation/deps.ts'
import type { Actor } from '../kit/actor.ts'
import { DomainError, invalid } from '../kit/errors.ts'
import { asUuid, toId } from '../kit/ids.ts'
import { requireActiveAgent } from './check.ts'

/** Agent as it is shown to those who choose one. `description` is cut. */
export type AgentName = { id: string; name: string; description: string | null }

const DESCRIPTION_CHARACTERS = 300

/** Lists the names of the newest active agents, newest first. It reads neither prompts nor tools. */
export const listAgentNames = (deps: Deps, { organizationId }: Actor, limit: number): Promise<AgentName[]> =>
  deps.db.$queryRaw`
    SELECT id, name, left(description, ${DESCRIPTION_CHARACTERS}) AS description FROM agents
    WHERE organization_id = ${organizationId}::uuid AND status = 'active'
    ORDER BY created_at DESC, id DESC LIMIT ${limit}`

const SHOWN_NAME = 100
const SHOWN_AGENTS = 10

/**
 * Returns the id of an active agent, which is given by its id or by a name that only one active agent has. Throws
 * `not_found` and `invalid`.
 */
export async function findAgentNamed(deps: Deps, actor: Actor, text: string, field: string): Promise<AgentId> {
  const { data: id } = AgentId.safeParse(text)
  if (id !== undefined) return asUuid((await requireActiveAgent(deps, actor, id, field)).id)
  const { organizationId } = actor
  const shown = JSON.stringify(text.slice(0, SHOWN_NAME))
  const [agent, ...others] = await deps.db.agent.findMany({
    where: { organizationId, name: text, status: 'active' },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
    take: SHOWN_AGENTS,
    select: { id: true },
  })
  if (agent === undefined) {
    const isArchived = (await deps.db.agent.count({ where: { organizationId, name: text }, take: 1 })) > 0
    const sentence = `${field}: ${isArchived ? `the agent ${shown} is archived` : `there is no agent named ${shown}`}`
    throw new DomainError('not_found', sentence, { field })
  }
  if (others.length > 0) {
    const ids = [agent, ...others].map(({ id }) => toId('agent', id))
    throw invalid(`${field}: several agents are named ${shown}: ${ids.join(', ')}; give the id of one`)
  }
  return asUuid(agent.id)
}
