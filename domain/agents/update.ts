import type { Agent, UpdateAgentRequest } from '../../contract/agents.ts'
import type { AgentId } from '../../contract/kit/ids.ts'
import type { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import { type Audited, audited, givenFields } from '../kit/audit/entry.ts'
import { conflict, notFound } from '../kit/errors.ts'
import { checkAgent } from './check.ts'
import type { Deps } from './deps.ts'
import { writableSchema } from './output-schema.ts'
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
    outputSchema: input.output_schema == null ? undefined : writableSchema(input.output_schema),
    status: input.status ?? undefined,
  }
  const { version_note: note, if_version: ifVersion, ...given } = input
  const told = { action: 'agent.update', target: id, details: givenFields(given) } as const
  return updateAgent(deps, actor, changes, told, { note, ifVersion })
}

/** Archives an agent; may be repeated. Throws `not_found`. */
export async function archiveAgent(deps: Deps, actor: Actor, id: AgentId): Promise<void> {
  await updateAgent(deps, actor, { status: 'archived' }, { action: 'agent.archive', target: id })
}

/** Note of the version that a change makes, and the version that the agent must have. */
type Versioned = { note?: string | null | undefined; ifVersion?: number | null | undefined }

/**
 * Updates the row of the agent that `told` is about. Throws `not_found`, and `conflict` when the agent has another version
 * than `ifVersion`.
 */
export async function updateAgent(
  deps: Deps,
  actor: Actor,
  data: Prisma.AgentUpdateManyMutationInput,
  told: Audited,
  { note, ifVersion }: Versioned = {},
): Promise<Agent> {
  const where = { id: told.target, organizationId: actor.organizationId }
  const row = await audited(deps, actor, told, async (tx) => {
    await signVersion(tx, actor, note)
    const version = ifVersion == null ? {} : { version: ifVersion }
    const [changed] = await tx.agent.updateManyAndReturn({ where: { ...where, ...version }, data })
    if (changed !== undefined) return changed
    const present = await tx.agent.findFirst({ where, select: { version: true } })
    if (present === null) throw notFound('Agent')
    throw conflict(`if_version: the agent has version ${present.version}; GET it and apply your change to that`)
  })
  return presentAgent(deps, row)
}

/** Says for the transaction's changes of agents who makes them, and why. See keep_agent_version. */
export async function signVersion(
  tx: Prisma.TransactionClient,
  { userId, apiKeyId }: Actor,
  note: string | null | undefined,
): Promise<void> {
  const by = JSON.stringify({ user_id: userId, api_key_id: apiKeyId, note: note ?? null })
  await tx.$queryRaw`SELECT set_config('agent_sessions.version', ${by}, true)`
}
