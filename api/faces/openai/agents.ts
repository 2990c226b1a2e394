import type { Agent } from '../../../contract/agents.ts'
import { AgentId } from '../../../contract/kit/ids.ts'
import { findAgentNamed } from '../../../domain/agents/named.ts'
import { getAgent } from '../../../domain/agents/read.ts'
import type { Deps } from '../../../domain/deps.ts'
import type { Actor } from '../../../domain/kit/actor.ts'
import type { Model } from './endpoints.ts'

/** Returns the agent that a client calls its model. Throws `not_found` and `invalid`. */
export async function findAgentOf(deps: Deps, actor: Actor, model: string): Promise<Agent> {
  const { data: id } = AgentId.safeParse(model)
  // An archived agent goes on with the sessions that it has.
  return getAgent(deps, actor, id ?? (await findAgentNamed(deps, actor, model, 'model')))
}

export const presentModel = ({ id, name, created_at }: Agent): Model => ({
  id,
  object: 'model',
  created: Math.floor(Date.parse(created_at) / 1000),
  owned_by: 'organization',
  name,
})
