import { isDeepStrictEqual } from 'node:util'
import type { AgentLimits } from '../../contract/agents.ts'
import type { AgentId, ModelId, ModelRef } from '../../contract/kit/ids.ts'
import type { AgentCapabilityConfig, ToolDefinition } from '../../contract/tools.ts'
import type { Agent as AgentRow } from '../../prisma/generated/client.ts'
import type { Deps as Below } from '../conversation/deps.ts'
import type { Actor } from '../kit/actor.ts'
import { afterField, invalid } from '../kit/errors.ts'
import { asUuid, toId } from '../kit/ids.ts'
import { readModel, readModelsNamed } from '../models/llm/read-models.ts'
import { checkScript } from '../models/llm/simulator/llmsim-script.ts'
import { askedSession } from '../tools/agents/capability.ts'
import { webFetch } from '../tools/capabilities/builtin/web-fetch.ts'
import { checkWebFetch } from '../tools/capabilities/builtin/web-fetch-headers.ts'
import type { Capability } from '../tools/capabilities/capability.ts'
import { toolChoiceOf } from '../tools/capabilities/server-config.ts'
import { readCapabilities } from '../tools/registry/read.ts'
import { checkTools } from './check-tools.ts'
import type { Deps } from './deps.ts'
import { checkOutputSchema } from './output-schema.ts'
import { findAgent, findVersion } from './read.ts'
import { checkLimits } from './turn-caps.ts'

type Checked = {
  system_prompt?: string | null | undefined
  default_model_id?: ModelRef | '' | null | undefined
  capabilities?: AgentCapabilityConfig[] | null | undefined
  tools?: ToolDefinition[] | null | undefined
  limits?: AgentLimits | null | undefined
  output_schema?: Record<string, unknown> | null | undefined
}

/**
 * Stored fields of an agent, kept even when what they name is no longer usable. The contract validated the columns
 * when they were written.
 */
export type StoredAgent = { defaultModelId: string | null; capabilities: unknown; tools: unknown; limits?: unknown }

/** Input whose model is given by its id. */
type WithModelId<T extends Checked> = Omit<T, 'default_model_id'> & {
  default_model_id?: ModelId | Exclude<T['default_model_id'], ModelRef>
}

/**
 * Throws `invalid` for a model, a capability, a tool or a script that cannot work. Absent fields are not checked, nor
 * are the model and the capabilities that the agent had `before`. Tools are checked again whenever the capabilities
 * change. A limit must not be above the installation's. Returns the input with the id of its model.
 */
export async function checkAgent<T extends Checked>(
  deps: Deps,
  actor: Actor,
  input: T,
  before?: StoredAgent | null,
): Promise<WithModelId<T>> {
  const kept = before?.defaultModelId
  const default_model_id = await requireModel(deps, actor, input.default_model_id, 'default_model_id', kept)
  const known = await checkCapabilities(
    deps,
    actor,
    input.capabilities,
    before?.capabilities as AgentCapabilityConfig[] | undefined,
  )
  checkPrompt(input.system_prompt, 'system_prompt')
  await checkAgentTools(deps, actor, { ...input, known }, before)
  await checkOutputSchema(deps, actor, input.output_schema)
  checkLimits(deps.limits, input.limits ?? {}, before?.limits ?? {})
  // TypeScript keeps a spread type parameter's own field.
  return { ...input, default_model_id } as WithModelId<T>
}

/** Throws `invalid` for the script of a simulated model in a prompt, if it cannot be run. */
export function checkPrompt(prompt: string | null | undefined, field: string): void {
  const problem = checkScript(prompt ?? '')
  if (problem !== undefined) throw invalid(`${field}: ${afterField(problem)}`)
}

async function checkAgentTools(
  deps: Below,
  actor: Actor,
  input: Checked & { known: Capability[] },
  before: StoredAgent | null | undefined,
): Promise<void> {
  if (input.tools == null && input.capabilities == null) return
  const had = await readStoredTools(deps, actor, before ?? { capabilities: [], tools: [] })
  const has = input.capabilities == null ? had : { refs: input.capabilities, known: input.known }
  await checkTools(deps, actor, input.tools ?? had.tools, { what: 'agent', ...has }, before ? had : undefined)
}

/** Throws `invalid` for a tool of a stored agent that a new agent could not have. */
export async function checkStoredTools(deps: Below, actor: Actor, row: StoredTools): Promise<void> {
  const { tools, ...owner } = await readStoredTools(deps, actor, row)
  await checkTools(deps, actor, tools, { what: 'agent', ...owner })
}

type StoredTools = Pick<StoredAgent, 'capabilities' | 'tools'>

async function readStoredTools(deps: Below, { organizationId }: Actor, row: StoredTools) {
  const refs = row.capabilities as AgentCapabilityConfig[]
  return { tools: row.tools as ToolDefinition[], refs, known: await readCapabilities(deps, organizationId, refs) }
}

/**
 * Returns the id of a model, which may be given by a unique name. Throws `invalid` for a model that does not exist or
 * is disabled, unless it is `kept`.
 */
export async function requireModel<R extends ModelRef | '' | null | undefined>(
  deps: Below,
  { organizationId }: Pick<Actor, 'organizationId'>,
  ref: R,
  field: string,
  kept?: string | null,
): Promise<ModelId | Exclude<R, ModelRef>> {
  if (ref == null || ref === '' || ref === kept) return ref as ModelId | Exclude<R, ModelRef>
  const isId = typeof ref === 'string'
  const found = isId
    ? [await readModel(deps, organizationId, ref)].filter((model) => model !== undefined)
    : await readModelsNamed(deps, organizationId, ref.name)
  const shown = isId ? toId('model', ref) : JSON.stringify(ref.name)
  if (found.length === 0) throw invalid(`${field}: there is no model ${shown}; GET /v1/llm-models lists them`)
  const [model, ...others] = found.filter(({ isActive }) => isActive)
  if (model === undefined) {
    throw invalid(`${field}: ${shown} or its provider is disabled; PATCH its status to "active" first`)
  }
  if (others.length > 0) {
    const all = [model, ...others].map(({ id, provider }) => `${toId('model', id)} of ${provider.name}`)
    throw invalid(`${field}: ${all.length} models are named ${shown}: ${all.join(', ')}; give the id of one`)
  }
  return asUuid(model.id)
}

/** Returns an agent that accepts new sessions. Throws `invalid` when it does not exist or is archived. */
export async function requireActiveAgent(
  deps: Below,
  actor: Actor,
  agentId: AgentId,
  field: string,
): Promise<AgentRow> {
  const agent = await findAgent(deps, actor, agentId)
  const id = toId('agent', agentId)
  if (agent === null) throw invalid(`${field}: there is no agent ${id}`)
  if (agent.status === 'archived') {
    throw invalid(`${field}: ${id} is archived; PATCH its status to "active" to use it again`)
  }
  return agent
}

/**
 * Throws `invalid` for a capability that is unknown or disabled, unless it is in `before`, and for a wrong
 * configuration of an MCP server. A capability that is coming soon counts as known. Returns the service's capabilities
 * and the organization's named ones.
 */
export async function checkCapabilities(
  deps: Below,
  { organizationId }: Pick<Actor, 'organizationId'>,
  capabilities: AgentCapabilityConfig[] | null | undefined,
  before: AgentCapabilityConfig[] = [],
): Promise<Capability[]> {
  for (const [position, { ref, config }] of (capabilities ?? []).entries()) {
    const field = `capabilities.${position}.config`
    if (ref.startsWith('mcp:') && toolChoiceOf(config) === undefined)
      throw invalid(`${field}: must be {"tools": [names of tools]} or nothing for an MCP server`)
    if (ref.startsWith('agent:') && askedSession(config) === undefined)
      throw invalid(`${field}: must be {"session": "new"}, {"session": "same"} or nothing for an agent`)
  }
  await checkConfigs(deps, organizationId, capabilities ?? [], before)
  const known = await readCapabilities(deps, organizationId, capabilities ?? [])
  const kept = new Set(before.map(({ ref }) => ref))
  for (const { ref } of capabilities ?? []) {
    if (kept.has(ref)) continue
    const status = known.find(({ id }) => id === ref)?.status
    const shown = `"${ref.slice(0, 100)}"`
    if (status === undefined) {
      const hint = (await hintOfName(deps, organizationId, ref)) ?? 'GET /v1/capabilities lists them'
      throw invalid(`capabilities: there is no capability ${shown}; ${hint}`)
    }
    if (status === 'disabled') {
      throw invalid(`capabilities: ${shown} is disabled; an administrator can PATCH its status to "active"`)
    }
  }
  return known
}

/** Checks configurations that name secrets, except the ones in `before`, whose secrets may have been deleted. */
async function checkConfigs(
  { db }: Below,
  organizationId: string,
  capabilities: AgentCapabilityConfig[],
  before: AgentCapabilityConfig[],
): Promise<void> {
  for (const [position, one] of capabilities.entries()) {
    if (one.ref !== webFetch.id || before.some((other) => isDeepStrictEqual(one, other))) continue
    await checkWebFetch(db, organizationId, one.config, `capabilities.${position}.config`)
  }
}

/** Returns a hint with the right ref when a ref has the name of an MCP server or a skill instead of its UUID. */
async function hintOfName(deps: Below, organizationId: string, ref: string): Promise<string | undefined> {
  const [, kind, name] = /^(mcp|skill):(.+)$/s.exec(ref) ?? []
  if (name === undefined) return undefined
  const wanted = { where: { organizationId, name }, select: { id: true } }
  const row = kind === 'mcp' ? await deps.db.mcpServer.findFirst(wanted) : await deps.db.skill.findFirst(wanted)
  return row === null ? undefined : `the ref of that ${kind === 'mcp' ? 'MCP server' : 'skill'} is ${kind}:${row.id}`
}

/** Returns the version that a session is to run. Throws `invalid` when its agent has no such version. */
export async function checkVersion(deps: Below, actor: Actor, agentId: string, version: number) {
  const row = await findVersion(deps, actor, agentId, version)
  if (row === null) throw invalid(`agent_version: ${toId('agent', agentId)} has no version ${version}`)
  return row
}
