import { agentEndpoints } from '../../contract/agents.ts'
import { createAgent, getAgent, listAgents } from '../../domain/agents.ts'
import type { Deps } from '../../domain/deps.ts'
import { type Handle, reply } from '../handle.ts'

export function agentRoutes(handle: Handle, deps: Deps): void {
  handle(agentEndpoints.list, async ({ scope, query }) =>
    reply(200, { data: await listAgents(deps, scope, query.search) }),
  )
  handle(agentEndpoints.create, async ({ scope, body }) => {
    const { created, agent } = await createAgent(deps, scope, body)
    return reply(created ? 201 : 200, agent)
  })
  handle(agentEndpoints.get, async ({ scope, params }) => reply(200, await getAgent(deps, scope, params.agent_id)))
}
