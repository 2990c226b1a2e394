import type { AgentId, ModelId } from '../../contract/ids.ts'
import type { AgentCapabilityConfig, ToolDefinition } from '../../contract/tools.ts'
import type { Agent } from '../../prisma/generated/client.ts'
import type { Actor } from '../actor.ts'
import { checkSchemas } from '../capabilities/arguments/check.ts'
import type { Capability } from '../capabilities/capability.ts'
import { toolChoiceOf } from '../capabilities/server-config.ts'
import { readCapabilities } from '../capability-registry/read.ts'
import type { Deps } from '../deps.ts'
import { invalid } from '../errors.ts'
import { toId } from '../ids.ts'
import { readModel } from '../llm/read-models.ts'
import { checkScript } from '../llm/simulator/llmsim-script.ts'
import { findAgent } from './read.ts'

type Checked = {
  system_prompt?: string | null | undefined
  default_model_id?: ModelId | '' | null | undefined
  capabilities?: AgentCapabilityConfig[] | null | undefined
  tools?: ToolDefinition[] | null | undefined
}

/** What an agent has stored, capabilities as JSON. It is kept even where it cannot be used any more. */
export type StoredAgent = { defaultModelId: string | null; capabilities: unknown }

/**
 * Throws `invalid` for a model, a capability, a tool or a script that cannot work. Absent fields are not checked, and
 * neither are the model and the capabilities that the agent named `before`.
 */
export async function checkAgent(deps: Deps, actor: Actor, input: Checked, before?: StoredAgent | null): Promise<void> {
  if (input.default_model_id !== before?.defaultModelId) {
    await checkModel(deps, actor, input.default_model_id, 'default_model_id')
  }
  // Validated by the contract when they were written.
  await checkCapabilities(deps, actor, input.capabilities, before?.capabilities as AgentCapabilityConfig[] | undefined)
  const scriptProblem = checkScript(input.system_prompt ?? '')
  if (scriptProblem !== undefined) throw invalid(`system_prompt: ${scriptProblem}`)
  await checkTools(deps, actor, input.tools)
}

/** Throws `invalid` for a model id that does not exist, and for a model that is disabled. */
export async function checkModel(
  deps: Deps,
  { organizationId }: Pick<Actor, 'organizationId'>,
  modelId: ModelId | '' | null | undefined,
  field: string,
): Promise<void> {
  if (!modelId) return
  const model = await readModel(deps, organizationId, modelId)
  const id = toId('model', modelId)
  if (model === undefined) throw invalid(`${field}: there is no model ${id}; GET /v1/llm-models lists them`)
  if (!model.isActive) throw invalid(`${field}: ${id} or its provider is disabled; PATCH its status to "active" first`)
}

/** Returns an agent that takes new sessions. Throws `invalid` for one that does not exist, and for an archived one. */
export async function requireActiveAgent(deps: Deps, actor: Actor, agentId: AgentId, field: string): Promise<Agent> {
  const agent = await findAgent(deps, actor, agentId)
  const id = toId('agent', agentId)
  if (agent === null) throw invalid(`${field}: there is no agent ${id}`)
  if (agent.status === 'archived') {
    throw invalid(`${field}: ${id} is archived; PATCH its status to "active" to use it again`)
  }
  return agent
}

/**
 * Throws `invalid` for a capability that is unknown or disabled, unless it was named `before`, and for a wrong
 * configuration of an MCP server. Those that are coming soon are known. Returns the service's capabilities and those of the organization that are named.
 */
export async function checkCapabilities(
  deps: Deps,
  { organizationId }: Pick<Actor, 'organizationId'>,
  capabilities: AgentCapabilityConfig[] | null | undefined,
  before: AgentCapabilityConfig[] = [],
): Promise<Capability[]> {
  for (const [position, { ref, config }] of (capabilities ?? []).entries()) {
    if (!ref.startsWith('mcp:') || toolChoiceOf(config) !== undefined) continue
    throw invalid(`capabilities.${position}.config: must be {"tools": [names of tools]} or nothing for an MCP server`)
  }
  const known = await readCapabilities(deps, organizationId, capabilities ?? [])
  const kept = new Set(before.map(({ ref }) => ref))
  for (const { ref } of capabilities ?? []) {
    if (kept.has(ref)) continue
    const status = known.find(({ id }) => id === ref)?.status
    const shown = `"${ref.slice(0, 100)}"`
    if (status === undefined) {
      throw invalid(`capabilities: there is no capability ${shown}; GET /v1/capabilities lists them`)
    }
    if (status === 'disabled') {
      throw invalid(`capabilities: ${shown} is disabled; an administrator can PATCH its status to "active"`)
    }
  }
  return known
}

/** Throws `invalid` for a tool whose parameters are not the JSON Schema of an object. */
export async function checkTools(
  deps: Deps,
  { organizationId }: Actor,
  tools: ToolDefinition[] | null | undefined,
): Promise<void> {
  const problems = await checkSchemas(
    deps.threads.schemas,
    (tools ?? []).map(({ parameters }) => parameters),
    organizationId,
  )
  const wrong = problems.findIndex((problem) => problem !== undefined)
  if (wrong !== -1) throw invalid(`tools.${wrong}.parameters: ${problems[wrong]}`)
}
