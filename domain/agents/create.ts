import { type Agent, type AgentLimits, type CreateAgentRequest, MAX_NAME_BYTES } from '../../contract/agents.ts'
import type { AgentId, ModelId } from '../../contract/kit/ids.ts'
import type { Agent as AgentRow, Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import { audit, givenFields } from '../kit/audit/entry.ts'
import { createOnce, findOrInsert } from '../kit/create-once.ts'
import { conflict, invalid } from '../kit/errors.ts'
import type { CreationAttempt } from '../kit/idempotency-keys.ts'
import { toId } from '../kit/ids.ts'
import { checkAgent, checkStoredTools, type StoredAgent } from './check.ts'
import type { Deps } from './deps.ts'
import { writableSchema } from './output-schema.ts'
import { presentAgent } from './present.ts'
import { findAgent, requireAgent } from './read.ts'
import { givenLimits } from './turn-caps.ts'
import { signVersion, updateAgent } from './update.ts'

export type WrittenAgent = { created: boolean; agent: Agent }

/**
 * Creates an agent. With an `id` in the input, replaces that agent, or creates it when it does not exist. Throws
 * `invalid` for a model, a capability, a tool or a script that cannot work.
 */
export async function createAgent(
  deps: Deps,
  actor: Actor,
  input: CreateAgentRequest,
  attempt: CreationAttempt,
): Promise<WrittenAgent> {
  if (input.id) return putAgent(deps, actor, input.id, input, attempt)
  if (input.if_version != null) throw invalid('if_version: needs the id of the agent that has the version')
  const prepare = async () => writableFields(await checkAgent(deps, actor, input))
  return { created: true, agent: await createNew(deps, actor, attempt, prepare, input.version_note) }
}

/**
 * Creates or replaces the agent. A replaced agent keeps its capabilities if the input has none. Throws the errors of
 * createAgent.
 */
export async function putAgent(
  deps: Deps,
  actor: Actor,
  id: AgentId,
  input: CreateAgentRequest,
  attempt: CreationAttempt = {},
): Promise<WrittenAgent> {
  const { version_note, if_version, ...content } = input
  const { capabilities, ...others } = content
  const given = capabilities?.length ? content : others
  let fields: Fields | undefined
  // Inserts first, so two concurrent requests with the same new id create and then replace it.
  const written = await findOrInsert<WrittenAgent>(attempt, {
    find: async (requestId) => {
      const row = await findWritten(deps, actor, id, requestId)
      return row && { created: false, agent: await presentAgent(deps, row) }
    },
    insert: async () => {
      const before = await findAgent(deps, actor, id)
      fields = writableFields(await checkAgent(deps, actor, given, before))
      if (if_version != null) return refuseNew(id, before)
      const row = await insertAgent(deps, actor, id, fields, attempt, version_note)
      return row && { created: true, agent: await presentAgent(deps, row) }
    },
  })
  if (written !== undefined) return written
  const changes = {
    ...fields,
    ...(given === content ? {} : { capabilities: undefined }),
    requestId: attempt.uuid ?? null,
  }
  const agent = await updateAgent(
    deps,
    actor,
    changes,
    {
      action: 'agent.update',
      target: id,
      details: givenFields(given),
    },
    { note: version_note, ifVersion: if_version },
  )
  return { created: false, agent }
}

/** Refuses to create an agent that must have a version. */
function refuseNew(id: AgentId, agent: AgentRow | null): undefined {
  if (agent === null) throw conflict(`if_version: there is no agent ${toId('agent', id)}`)
}

/**
 * Creates an agent from a document, which marks the names in `marked` as missing. Throws `conflict` when the document's
 * id exists, and the errors of createAgent.
 */
export async function importAgent(
  deps: Deps,
  actor: Actor,
  input: CreateAgentRequest,
  marked: StoredAgent,
  attempt: CreationAttempt,
): Promise<Agent> {
  const { id } = input
  const prepare = async () => writableFields(await checkAgent(deps, actor, input, marked))
  if (!id) return createNew(deps, actor, attempt, prepare)
  const row = await findOrInsert(attempt, {
    find: (requestId) => findWritten(deps, actor, id, requestId),
    insert: async () => insertAgent(deps, actor, id, await prepare(), attempt),
  })
  if (!row) throw conflict(`id: there is an agent ${toId('agent', id)} already; leave the id out to get a new one`)
  return presentAgent(deps, row)
}

/** Creates a copy of an agent. Throws `not_found`, and `invalid` for a tool that a new agent could not have. */
export function copyAgent(deps: Deps, actor: Actor, id: AgentId, attempt: CreationAttempt): Promise<Agent> {
  return createNew(deps, actor, attempt, async () => {
    const { name, description, systemPrompt, defaultModelId, tags, ...row } = await requireAgent(deps, actor, id)
    await checkStoredTools(deps, actor, row)
    // Valid: copied from a stored agent.
    const capabilities = row.capabilities as Prisma.InputJsonValue
    const tools = row.tools as Prisma.InputJsonValue
    const limits = row.limits as AgentLimits
    const outputSchema = writableSchema(row.outputSchema as Record<string, unknown> | null)
    const json = { capabilities, tools, limits, outputSchema }
    return { name: nameOfCopy(name), description, systemPrompt, defaultModelId, tags, ...json }
  })
}

const COPY = ' (copy)'

/** Returns the name of a copy. A name that is too long for the suffix loses its last characters. */
function nameOfCopy(name: string): string {
  const kept = [...name]
  while (Buffer.byteLength(kept.join('')) > MAX_NAME_BYTES - COPY.length) kept.pop()
  return kept.join('') + COPY
}

type Fields = Omit<ReturnType<typeof writableFields>, 'defaultModelId'> & { defaultModelId: string | null }
type Checked = Omit<CreateAgentRequest, 'default_model_id'> & { default_model_id?: ModelId | null | undefined }

const writableFields = (input: Checked) => ({
  name: input.name,
  description: input.description ?? null,
  systemPrompt: input.system_prompt,
  defaultModelId: input.default_model_id ?? null,
  tags: input.tags ?? [],
  // Parsed by the contract; Prisma's JSON input type does not accept `unknown`.
  capabilities: (input.capabilities ?? []) as Prisma.InputJsonValue,
  tools: (input.tools ?? []) as Prisma.InputJsonValue,
  limits: givenLimits(input.limits),
  outputSchema: writableSchema(input.output_schema),
})

/** Creates an agent with a new id. */
const createNew = async (
  deps: Deps,
  actor: Actor,
  attempt: CreationAttempt,
  prepare: () => Promise<Fields>,
  note?: string | null,
): Promise<Agent> =>
  presentAgent(
    deps,
    await createOnce(attempt, {
      find: (uuid) => findWritten(deps, actor, uuid, uuid),
      insert: async (uuid) => insertAgent(deps, actor, uuid, await prepare(), attempt, note),
    }),
  )

/** Returns the agent if another run of this request was the last to write it, apart from PATCH. */
async function findWritten(deps: Deps, actor: Actor, id: string, requestId: string): Promise<AgentRow | undefined> {
  const row = await findAgent(deps, actor, id)
  return row?.requestId === requestId ? row : undefined
}

/** Inserts an agent. Returns undefined when the organization has an agent with that id. */
async function insertAgent(
  deps: Deps,
  actor: Actor,
  id: string,
  fields: Fields,
  { uuid }: CreationAttempt,
  note?: string | null,
): Promise<AgentRow | undefined> {
  const data = { ...fields, id, organizationId: actor.organizationId, requestId: uuid ?? null }
  return deps.db.$transaction(async (tx) => {
    await signVersion(tx, actor, note)
    const [row] = await tx.agent.createManyAndReturn({ data: [data], skipDuplicates: true })
    if (row !== undefined) await audit(tx, actor, { action: 'agent.create', target: id })
    return row
  })
}
