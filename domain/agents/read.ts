import type { Agent } from '../../contract/agents.ts'
import type { AgentId } from '../../contract/kit/ids.ts'
import type { Agent as AgentRow, AgentVersion as VersionRow } from '../../prisma/generated/client.ts'
import type { Deps } from '../conversation/deps.ts'
import type { Actor } from '../kit/actor.ts'
import { notFound } from '../kit/errors.ts'
import { presentAgent } from './present.ts'

/** Returns an agent, even an archived one. Throws `not_found`. */
export const getAgent = async (deps: Deps, actor: Actor, id: AgentId): Promise<Agent> =>
  presentAgent(deps, await requireAgent(deps, actor, id))

export async function requireAgent(deps: Deps, actor: Actor, id: AgentId): Promise<AgentRow> {
  const row = await findAgent(deps, actor, id)
  if (!row) throw notFound('Agent')
  return row
}

export const findAgent = (deps: Deps, { organizationId }: Actor, uuid: string): Promise<AgentRow | null> =>
  deps.db.agent.findUnique({ where: { organizationId_id: { organizationId, id: uuid } } })

/** Returns a version of one of the organization's agents. */
export const findVersion = (
  { db }: Pick<Deps, 'db'>,
  { organizationId }: Pick<Actor, 'organizationId'>,
  agentId: string,
  version: number,
): Promise<VersionRow | null> =>
  db.agentVersion.findUnique({ where: { organizationId_agentId_version: { organizationId, agentId, version } } })
