import type { Agent, UpdateAgentRequest } from '../../contract/agents.ts'
import type { AgentId } from '../../contract/kit/ids.ts'
import type { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import { type Audited, audited, givenFields } from '../kit/audit/entry.ts'
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
  const changes = {
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
  }
  return updateAgent(deps, actor, changes, { action: 'agent.update', target: id, details: givenFields(input) })
}

/** Archives an agent; may be repeated. Throws `not_found`. */
export async function archiveAgent(deps: Deps, actor: Actor, id: AgentId): Promise<void> {
  await updateAgent(deps, actor, { status: 'archived' }, { action: 'agent.archive', target: id })
}

/** Updates the row of the agent that `told` is about. Throws `not_found`. */
export async function updateAgent(
  deps: Deps,
  actor: Actor,
  data: Prisma.AgentUpdateManyMutationInput,
  told: Audited,
): Promise<Agent> {
  const where = { id: told.target, organizationId: actor.organizationId }
  const row = await audited(deps, actor, told, async (tx) => {
    const [changed] = await tx.agent.updateManyAndReturn({ where, data })
    if (changed === undefined) throw notFound('Agent')
    return changed
  })
  return presentAgent(deps, row)
}
