import { type Agent, type CreateAgentRequest, MAX_NAME_BYTES, type UpdateAgentRequest } from '../../contract/agents.ts'
import type { AgentId } from '../../contract/ids.ts'
import type { Agent as AgentRow, Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../actor.ts'
import type { Deps } from '../deps.ts'
import { conflict, notFound } from '../errors.ts'
import type { CreationAttempt } from '../idempotency-keys.ts'
import { newUuid, toId } from '../ids.ts'
import { checkAgent } from './check.ts'
import { findAgent, presentAgent, requireAgent } from './read.ts'

export type WrittenAgent = { created: boolean; agent: Agent }

/**
 * `id` in the input names an agent to replace, or to create when there is none. Throws `invalid` for a model, a
 * capability, a tool or a script that cannot work.
 */
export async function createAgent(
  deps: Deps,
  actor: Actor,
  input: CreateAgentRequest,
  attempt: CreationAttempt,
): Promise<WrittenAgent> {
  if (input.id) return putAgent(deps, actor, input.id, input, attempt)
  const agent = await createNew(deps, actor, attempt, async () => {
    await checkAgent(deps, input)
    return writableFields(input)
  })
  return { created: true, agent }
}

/** Creates the agent, or replaces it but for capabilities that are not given. Throws as createAgent. */
export async function putAgent(
  deps: Deps,
  actor: Actor,
  id: AgentId,
  input: CreateAgentRequest,
  attempt: CreationAttempt = {},
): Promise<WrittenAgent> {
  const earlier = await findWritten(deps, actor, attempt, id)
  if (earlier) return { created: false, agent: presentAgent(earlier) }
  await checkAgent(deps, input)
  const { capabilities, ...fields } = writableFields(input)
  // The insert comes first, so that of two requests with one new id one creates and the other replaces.
  const inserted = await insertAgent(deps, actor, id, { ...fields, capabilities }, attempt)
  if (inserted) return { created: true, agent: presentAgent(inserted) }
  const other = await findWritten(deps, actor, attempt, id)
  if (other) return { created: false, agent: presentAgent(other) }
  const agent = await updateAgent(deps, actor, id, {
    ...fields,
    ...(input.capabilities?.length ? { capabilities } : {}),
    requestId: attempt.uuid ?? null,
  })
  return { created: false, agent }
}

/** One statement, so that of several changes at once none is lost. Throws `not_found`, and as createAgent. */
export async function patchAgent(deps: Deps, actor: Actor, id: AgentId, input: UpdateAgentRequest): Promise<Agent> {
  await requireAgent(deps, actor, id)
  await checkAgent(deps, input)
  return updateAgent(deps, actor, id, {
    name: input.name ?? undefined,
    description: input.description ?? undefined,
    systemPrompt: input.system_prompt ?? undefined,
    defaultModelId: input.default_model_id ?? undefined,
    tags: input.tags ?? undefined,
    // Parsed by the contract; Prisma's JSON input type knows no `unknown`.
    capabilities: (input.capabilities ?? undefined) as Prisma.InputJsonValue | undefined,
    tools: (input.tools ?? undefined) as Prisma.InputJsonValue | undefined,
    status: input.status ?? undefined,
  })
}

/** May be repeated. Throws `not_found`. */
export async function archiveAgent(deps: Deps, actor: Actor, id: AgentId): Promise<void> {
  await updateAgent(deps, actor, id, { status: 'archived' })
}

/** Throws `not_found`. */
export function copyAgent(deps: Deps, actor: Actor, id: AgentId, attempt: CreationAttempt): Promise<Agent> {
  return createNew(deps, actor, attempt, async () => {
    const { name, description, systemPrompt, defaultModelId, tags, ...row } = await requireAgent(deps, actor, id)
    // As another agent has them already.
    const capabilities = row.capabilities as Prisma.InputJsonValue
    const tools = row.tools as Prisma.InputJsonValue
    return { name: nameOfCopy(name), description, systemPrompt, defaultModelId, tags, capabilities, tools }
  })
}

const COPY = ' (copy)'

/** A name that is too long for the addition loses its last characters to it. */
function nameOfCopy(name: string): string {
  const kept = [...name]
  while (Buffer.byteLength(kept.join('')) > MAX_NAME_BYTES - COPY.length) kept.pop()
  return kept.join('') + COPY
}

/** Throws `conflict` when the document's id exists, and as createAgent. */
export async function importAgent(
  deps: Deps,
  actor: Actor,
  input: CreateAgentRequest,
  attempt: CreationAttempt,
): Promise<Agent> {
  if (!input.id) return (await createAgent(deps, actor, input, attempt)).agent
  const { id } = input
  const earlier = await findWritten(deps, actor, attempt, id)
  if (earlier) return presentAgent(earlier)
  await checkAgent(deps, input)
  const inserted = await insertAgent(deps, actor, id, writableFields(input), attempt)
  const row = inserted ?? (await findWritten(deps, actor, attempt, id))
  if (!row) throw conflict(`id: there is an agent ${toId('agent', id)} already; leave the id out to get a new one`)
  return presentAgent(row)
}

type Fields = Omit<ReturnType<typeof writableFields>, 'defaultModelId'> & { defaultModelId: string | null }

const writableFields = (input: CreateAgentRequest) => ({
  name: input.name,
  description: input.description ?? null,
  systemPrompt: input.system_prompt,
  defaultModelId: input.default_model_id ?? null,
  tags: input.tags ?? [],
  // Parsed by the contract; Prisma's JSON input type knows no `unknown`.
  capabilities: (input.capabilities ?? []) as Prisma.InputJsonValue,
  tools: (input.tools ?? []) as Prisma.InputJsonValue,
})

/** An agent with a new id; the one that another run of the request has created, if there is one. */
async function createNew(
  deps: Deps,
  actor: Actor,
  attempt: CreationAttempt,
  prepare: () => Promise<Fields>,
): Promise<Agent> {
  const uuid = attempt.uuid ?? newUuid()
  const row =
    (await findWritten(deps, actor, attempt, uuid)) ??
    (await insertAgent(deps, actor, uuid, await prepare(), attempt)) ??
    (await findWritten(deps, actor, attempt, uuid))
  if (!row) throw new Error('An agent was neither created nor found.')
  return presentAgent(row)
}

/** The agent, if it was another run of this request that wrote it last but for PATCH. */
async function findWritten(
  deps: Deps,
  actor: Actor,
  attempt: CreationAttempt,
  id: string,
): Promise<AgentRow | undefined> {
  if (attempt.uuid === undefined) return undefined
  const row = await findAgent(deps, actor, id)
  return row?.requestId === attempt.uuid ? row : undefined
}

/** Undefined when the organization has an agent with that id. */
async function insertAgent(
  deps: Deps,
  { organizationId }: Actor,
  id: string,
  fields: Fields,
  { uuid }: CreationAttempt,
): Promise<AgentRow | undefined> {
  const [row] = await deps.db.agent.createManyAndReturn({
    data: [{ ...fields, id, organizationId, requestId: uuid ?? null }],
    skipDuplicates: true,
  })
  return row
}

async function updateAgent(
  deps: Deps,
  { organizationId }: Actor,
  id: string,
  data: Prisma.AgentUpdateManyMutationInput,
): Promise<Agent> {
  const [row] = await deps.db.agent.updateManyAndReturn({ where: { id, organizationId }, data })
  if (!row) throw notFound('Agent')
  return presentAgent(row)
}
