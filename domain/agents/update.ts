import type { Agent, UpdateAgentRequest } from '../../contract/agents.ts'
import type { AgentId } from '../../contract/kit/ids.ts'
import type { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import { notFound } from '../kit/errors.ts'
import { checkAgent } from './check.ts'
import type { Deps } from './deps.ts'
import { presentAgent } from './present.ts'
import { requireAgent } from './read.ts'
import { givenLimits } from './turn-caps.ts'

/**
 * Changes the given fields in one statement, so that no concurrent change is lost. Throws `not_found`, and the errors
 * of createAgent.
 */
export async function patchAgent(deps: Deps, actor: Actor, id: AgentId, input: UpdateAgentRequest): Promise<Agent> {
  const { default_model_id } = await checkAgent(deps, actor, input, await requireAgent(deps, actor, id))
  return updateAgent(deps, actor, id, {
    name: input.name ?? undefined,
    description: input.description ?? undefined,
    systemPrompt: input.system_prompt ?? undefined,
    defaultModelId: default_model_id === '' ? null : (default_model_id ?? undefined),
    tags: input.tags ?? undefined,
    // Parsed by the contract; Prisma's JSON input type does not accept `unknown`.
    capabilities: (input.capabilities ?? undefined) as Prisma.InputJsonValue | undefined,
    tools: (input.tools ?? undefined) as Prisma.InputJsonValue | undefined,
    limits: input.limits == null ? undefined : givenLimits(input.limits),
    status: input.status ?? undefined,
  })
}

/** Archives an agent; may be repeated. Throws `not_found`. */
export async function archiveAgent(deps: Deps, actor: Actor, id: AgentId): Promise<void> {
  await updateAgent(deps, actor, id, { status: 'archived' })
}

/** Updates an agent's row. Throws `not_found`. */
export async function updateAgent(
  deps: Deps,
  { organizationId }: Actor,
  id: string,
  data: Prisma.AgentUpdateManyMutationInput,
): Promise<Agent> {
  const [row] = await deps.db.agent.updateManyAndReturn({ where: { id, organizationId }, data })
  if (!row) throw notFound('Agent')
  return presentAgent(deps, row)
}
