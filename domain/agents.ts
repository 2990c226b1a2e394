import type { Agent, CreateAgentRequest } from '../contract/agents.ts'
import type { AgentCapabilityConfig, ToolDefinition } from '../contract/tools.ts'
import type { Agent as AgentRow, Prisma } from '../prisma/generated/client.ts'
import { checkSchemas } from './capabilities/arguments.ts'
import type { Deps, Scope } from './deps.ts'
import { invalid, notFound } from './errors.ts'
import { newUuid, toId, toUuid } from './ids.ts'
import { findModel } from './llm/catalog.ts'
import { checkScript } from './llm/llmsim-script.ts'
import { presentUsage } from './usage.ts'

/** Lists have no pages in the interface; this bounds the answer. */
const MAX_LISTED = 10_000

export async function listAgents(deps: Deps, scope: Scope, search?: string): Promise<Agent[]> {
  const contains = search === undefined ? undefined : ({ contains: likeText(search), mode: 'insensitive' } as const)
  const rows = await deps.db.agent.findMany({
    where: {
      organizationId: scope.organizationId,
      status: 'active',
      ...(contains === undefined ? {} : { OR: [{ name: contains }, { description: contains }] }),
    },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
    take: MAX_LISTED,
  })
  return rows.map(presentAgent)
}

/** Prisma passes LIKE's wildcards through. */
const likeText = (text: string): string => text.replace(/[\\%_]/g, '\\$&')

/**
 * `id` in the input names an agent to update, or to create when there is none. Throws `invalid` for a model, a
 * capability, a tool or a script that cannot work.
 */
export async function createAgent(
  deps: Deps,
  scope: Scope,
  input: CreateAgentRequest,
): Promise<{ created: boolean; agent: Agent }> {
  await checkAgent(deps, input)
  const fields = writableFields(input)
  const id = input.id ? toUuid(input.id) : newUuid()
  // The insert comes first, so that of two requests with one new id one creates and the other updates.
  const inserted = await deps.db.agent.createManyAndReturn({
    data: [{ ...fields, id, organizationId: scope.organizationId }],
    skipDuplicates: true,
  })
  if (inserted[0]) return { created: true, agent: presentAgent(inserted[0]) }
  const updated = await deps.db.agent.updateManyAndReturn({
    where: { id, organizationId: scope.organizationId },
    data: { ...fields, ...(input.capabilities === undefined ? { capabilities: undefined } : {}) },
  })
  // Taken by another organization; saying so would tell that it exists.
  if (!updated[0]) throw invalid('id cannot be used; leave it out to get a new one')
  return { created: false, agent: presentAgent(updated[0]) }
}

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

async function checkAgent(deps: Deps, input: CreateAgentRequest): Promise<void> {
  checkModel(deps, input.default_model_id, 'default_model_id')
  checkCapabilities(deps, input.capabilities)
  const scriptProblem = checkScript(input.system_prompt)
  if (scriptProblem !== undefined) throw invalid(`system_prompt: ${scriptProblem}`)
  await checkTools(input.tools)
}

/** Throws `invalid` when a model id is given that does not exist. */
export function checkModel(deps: Deps, modelId: string | null | undefined, field: string): void {
  if (modelId && findModel(deps.models, modelId) === undefined) {
    throw invalid(`${field}: there is no model ${modelId}; GET /v1/llm-models lists them`)
  }
}

/** Throws `invalid` for a capability that does not exist; one that is coming soon may be named already. */
export function checkCapabilities(deps: Deps, capabilities: AgentCapabilityConfig[] | undefined): void {
  const known = new Set(deps.capabilities.map(({ id }) => id))
  const unknown = capabilities?.find(({ ref }) => !known.has(ref))
  if (unknown === undefined) return
  throw invalid(`capabilities: there is no capability "${unknown.ref.slice(0, 100)}"; GET /v1/capabilities lists them`)
}

/** Throws `invalid` for a tool whose parameters are no JSON Schema of an object. */
export async function checkTools(tools: ToolDefinition[] | undefined): Promise<void> {
  const problems = await checkSchemas((tools ?? []).map(({ parameters }) => parameters))
  const wrong = problems.findIndex((problem) => problem !== undefined)
  if (wrong !== -1) throw invalid(`tools.${wrong}.parameters: ${problems[wrong]}`)
}

export async function getAgent(deps: Deps, scope: Scope, id: string): Promise<Agent> {
  const row = await deps.db.agent.findFirst({ where: { id: toUuid(id), organizationId: scope.organizationId } })
  if (!row) throw notFound('Agent')
  return presentAgent(row)
}

const presentAgent = (row: AgentRow): Agent => ({
  id: toId('agent', row.id),
  name: row.name,
  description: row.description,
  system_prompt: row.systemPrompt,
  default_model_id: row.defaultModelId && toId('model', row.defaultModelId),
  tags: row.tags,
  // Written by writableFields only.
  capabilities: row.capabilities as AgentCapabilityConfig[],
  tools: row.tools as ToolDefinition[],
  status: row.status,
  usage: presentUsage(row),
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})
