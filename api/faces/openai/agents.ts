import type { Agent } from '../../../contract/agents.ts'
import { AgentId } from '../../../contract/kit/ids.ts'
import { listAgents } from '../../../domain/agents/list.ts'
import { getAgent } from '../../../domain/agents/read.ts'
import type { Deps } from '../../../domain/deps.ts'
import type { Actor } from '../../../domain/kit/actor.ts'
import { DomainError, invalid } from '../../../domain/kit/errors.ts'
import type { Model } from './endpoints.ts'

/** Returns the agent that a client calls its model, by id or by a name that no other active agent has. */
export async function findAgentOf(deps: Deps, actor: Actor, model: string): Promise<Agent> {
  const id = AgentId.safeParse(model)
  if (id.success) return getAgent(deps, actor, id.data)
  const named: Agent[] = []
  for await (const page of listAgents(deps, actor, { search: model })) {
    named.push(...page.filter(({ name }) => name === model))
    if (named.length > 1) break
  }
  const [agent, ...others] = named
  if (agent === undefined) {
    const sentence = `model: there is no agent ${JSON.stringify(model.slice(0, 200))}; GET /v1/models lists them`
    throw new DomainError('not_found', sentence, { field: 'model' })
  }
  if (others.length > 0) throw invalid(`model: several agents have this name; give an id, such as ${agent.id}`)
  return agent
}

export const presentModel = ({ id, name, created_at }: Agent): Model => ({
  id,
  object: 'model',
  created: Math.floor(Date.parse(created_at) / 1000),
  owned_by: 'organization',
  name,
})
