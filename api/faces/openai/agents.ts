import type { Agent } from '../../../contract/agents.ts'
import { AgentId } from '../../../contract/kit/ids.ts'
import { findAgentNamed } from '../../../domain/agents/named.ts'
import type { Deps } from '../../../domain/deps.ts'
import type { Actor } from '../../../domain/kit/actor.ts'
import type { Model } from './endpoints.ts'

/** Returns the id of the agent that a client calls its model. It may not exist. Throws `not_found` for a name. */
export const agentIdOf = async (deps: Deps, actor: Actor, model: string): Promise<AgentId> =>
  AgentId.safeParse(model).data ?? (await findAgentNamed(deps, actor, model, 'model'))

export const presentModel = ({ id, name, created_at }: Agent): Model => ({
  id,
  object: 'model',
  created: Math.floor(Date.parse(created_at) / 1000),
  owned_by: 'organization',
  name,
})
