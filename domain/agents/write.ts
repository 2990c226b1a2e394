import { type Agent, type CreateAgentRequest, MAX_NAME_BYTES, type UpdateAgentRequest } from '../../contract/agents.ts'
import type { Agent as AgentRow, Prisma } from '../../prisma/generated/client.ts'
import type { Deps, Scope } from '../deps.ts'
import { conflict, notFound } from '../errors.ts'
import type { Run } from '../idempotency.ts'
import { newUuid, toUuid } from '../ids.ts'
import { checkAgent } from './check.ts'
import { findAgent, presentAgent, requireAgent } from './read.ts'

export type WrittenAgent = { created: boolean; agent: Agent }

/**
 * `id` in the input names an agent to replace, or to create when there is none. Throws `invalid` for a model, a
 * capability, a tool or a script that cannot work.
 */
export async function createAgent(
  deps: Deps,
  scope: Scope,
  input: CreateAgentRequest,
  run: Run,
): Promise<WrittenAgent> {
  if (input.id) return putAgent(deps, scope, input.id, input)
  await checkAgent(deps, input)
  return { created: true, agent: presentAgent(await insertNew(deps, scope, writableFields(input), run)) }
}

/** Creates the agent, or replaces it but for capabilities that are not given. Throws as createAgent. */
export async function putAgent(deps: Deps, scope: Scope, id: string, input: CreateAgentRequest): Promise<WrittenAgent> {
  await checkAgent(deps, input)
  const uuid = toUuid(id)
  const { capabilities, ...fields } = writableFields(input)
  // The insert comes first, so that of two requests with one new id one creates and the other replaces.
  const inserted = await insertAgent(deps, scope, uuid, { ...fields, capabilities })
  if (inserted) return { created: true, agent: presentAgent(inserted) }
  const replaced = await updateAgent(
    deps,
    scope,
    uuid,
    input.capabilities?.length ? { ...fields, capabilities } : fields,
  )
  return { created: false, agent: replaced }
}

/** One statement, so that of several changes at once none is lost. Throws `not_found`, and as createAgent. */
export async function patchAgent(deps: Deps, scope: Scope, id: string, input: UpdateAgentRequest): Promise<Agent> {
  const uuid = toUuid(id)
  await requireAgent(deps, scope, id)
  await checkAgent(deps, input)
  return updateAgent(deps, scope, uuid, {
    name: input.name ?? undefined,
    description: input.description ?? undefined,
    systemPrompt: input.system_prompt ?? undefined,
    defaultModelId: input.default_model_id ? toUuid(input.default_model_id) : undefined,
    tags: input.tags ?? undefined,
    // Parsed by the contract; Prisma's JSON input type knows no `unknown`.
    capabilities: (input.capabilities ?? undefined) as Prisma.InputJsonValue | undefined,
    tools: (input.tools ?? undefined) as Prisma.InputJsonValue | undefined,
    status: input.status ?? undefined,
  })
}

/** May be repeated. Throws `not_found`. */
export async function archiveAgent(deps: Deps, scope: Scope, id: string): Promise<void> {
  await updateAgent(deps, scope, toUuid(id), { status: 'archived' })
}

/** Throws `not_found`. */
export async function copyAgent(deps: Deps, scope: Scope, id: string, run: Run): Promise<Agent> {
  const { name, description, systemPrompt, defaultModelId, tags, capabilities, tools } = await requireAgent(
    deps,
    scope,
    id,
  )
  const fields = {
    name: nameOfCopy(name),
    description,
    systemPrompt,
    defaultModelId,
    tags,
    // As another agent has them already.
    capabilities: capabilities as Prisma.InputJsonValue,
    tools: tools as Prisma.InputJsonValue,
  }
  return presentAgent(await insertNew(deps, scope, fields, run))
}

const COPY = ' (copy)'

/** A name that is too long for the addition loses its last characters to it. */
function nameOfCopy(name: string): string {
  const kept = [...name]
  while (Buffer.byteLength(kept.join('')) > MAX_NAME_BYTES - COPY.length) kept.pop()
  return kept.join('') + COPY
}

/** Throws `conflict` when the document's id exists, and as createAgent. */
export async function importAgent(deps: Deps, scope: Scope, input: CreateAgentRequest, run: Run): Promise<Agent> {
  await checkAgent(deps, input)
  const fields = writableFields(input)
  if (!input.id) return presentAgent(await insertNew(deps, scope, fields, run))
  const uuid = toUuid(input.id)
  const inserted = await insertAgent(deps, scope, uuid, fields, run)
  if (inserted) return presentAgent(inserted)
  const existing = await findAgent(deps, scope, uuid)
  if (existing && run.uuid !== undefined && existing.requestId === run.uuid) return presentAgent(existing)
  throw conflict(`id: there is an agent ${input.id} already; leave the id out to get a new one`)
}

type Fields = ReturnType<typeof writableFields>

const writableFields = (input: CreateAgentRequest) => ({
  name: input.name,
  description: input.description ?? null,
  systemPrompt: input.system_prompt,
  defaultModelId: input.default_model_id ? toUuid(input.default_model_id) : null,
  tags: input.tags ?? [],
  // Parsed by the contract; Prisma's JSON input type knows no `unknown`.
  capabilities: (input.capabilities ?? []) as Prisma.InputJsonValue,
  tools: (input.tools ?? []) as Prisma.InputJsonValue,
})

/** An agent with an id of its own; the one that an earlier run of the request has made, if there is one. */
async function insertNew(deps: Deps, scope: Scope, fields: Fields, run: Run): Promise<AgentRow> {
  const uuid = run.uuid ?? newUuid()
  const row = (await insertAgent(deps, scope, uuid, fields)) ?? (await findAgent(deps, scope, uuid))
  if (!row) throw new Error('An agent was neither created nor found.')
  return row
}

/** Undefined when the organization has an agent with that id. */
async function insertAgent(
  deps: Deps,
  scope: Scope,
  id: string,
  fields: Fields,
  run: Run = {},
): Promise<AgentRow | undefined> {
  const [row] = await deps.db.agent.createManyAndReturn({
    data: [{ ...fields, id, organizationId: scope.organizationId, requestId: run.uuid ?? null }],
    skipDuplicates: true,
  })
  return row
}

async function updateAgent(
  deps: Deps,
  { organizationId }: Scope,
  id: string,
  data: Prisma.AgentUpdateManyMutationInput,
): Promise<Agent> {
  const [row] = await deps.db.agent.updateManyAndReturn({ where: { id, organizationId }, data })
  if (!row) throw notFound('Agent')
  return presentAgent(row)
}
