import { createHash } from 'node:crypto'
import { BUDGET_TOOL } from '../../../contract/budgets.ts'
import type { ToolDefinition, ToolPolicy } from '../../../contract/tools.ts'
import { QUESTION_TOOL } from '../../../contract/turns.ts'
import { canonicalJson } from '../../../lib/canonical-json.ts'
import type { ToolSpec } from '../../models/llm/model.ts'
import { temporalTool } from '../task-queues/temporal-tool.ts'
import type { Tool } from './capability.ts'
import type { ResolvedCapability } from './resolve.ts'

export type OfferedTool = {
  spec: ToolSpec
  displayName: string
  /** Who runs it: the service, the service after a person's approval, or the client. */
  policy: ToolPolicy
  /** Tool of the service; absent for a client's tool. */
  tool?: Tool
  /** Configuration of the tool's capability by the agent or the session. */
  config?: unknown
}

/** Tools offered to a model, by name. */
export type Toolset = Map<string, OfferedTool>

/**
 * Combines the capabilities' tools with the definitions of agent and session. The session's definitions win over the
 * agent's.
 */
export function buildToolset(
  capabilities: ResolvedCapability[],
  agentTools: ToolDefinition[],
  sessionTools: ToolDefinition[],
): Toolset {
  const toolset: Toolset = new Map()
  for (const { capability, config } of capabilities) {
    for (const tool of capability.tools) {
      if (!toolset.has(tool.name)) toolset.set(tool.name, offerTool(tool, config))
    }
  }
  for (const definition of mergeDefinitions(agentTools, sessionTools)) {
    const { name } = definition
    const builtin = toolset.get(name)
    const offered = offer(definition, builtin)
    if (offered !== undefined) toolset.set(name, offered)
  }
  return toolset
}

/**
 * Returns the version of a tool that an approval is for. The service's own tools have one for each configuration: with other
 * headers a request is another one.
 */
export function approvableVersion({ tool, config }: Pick<OfferedTool, 'tool' | 'config'>): string | null {
  if (tool?.version !== undefined) return tool.version
  if (config == null) return null
  return `config:${createHash('sha256').update(canonicalJson(config)).digest('base64url')}`
}

/** Versions of approved tools by the tools' names. Null for a tool without. */
export type ApprovedTools = Record<string, string | null>

/**
 * Lets tools run that a person has approved for the whole session, as long as they are the tools that were shown and no
 * administrator requires an approval of each call.
 */
export function approveTools(toolset: Toolset, approved: ApprovedTools): Toolset {
  for (const [name, version] of Object.entries(approved)) {
    const offered = toolset.get(name)
    const { tool, policy } = offered ?? {}
    if (offered === undefined || tool === undefined || policy !== 'requires_approval') continue
    if (!tool.needsApproval && approvableVersion(offered) === version) toolset.set(name, { ...offered, policy: 'auto' })
  }
  return toolset
}

/** Undefined for a definition of a builtin tool that no capability provides. */
function offer(definition: ToolDefinition, builtin: OfferedTool | undefined): OfferedTool | undefined {
  if (definition.type === 'temporal') {
    return { ...offerTool(temporalTool(definition), undefined), policy: definition.policy ?? 'auto' }
  }
  return isClientRun(definition) ? offerClientTool(definition, builtin) : adapt(builtin, definition)
}

/** Names of the calls by which the service itself asks people. Clients show such a call without a tool's name and arguments. */
export const isReservedName = (name: string): boolean => name === QUESTION_TOOL || name === BUDGET_TOOL

/**
 * Returns the definitions that apply with these capabilities: a client's tool replaces a capability's tool only if it
 * says so, and a tool of the type temporal never does. It may have been defined before the capability had that tool, or
 * before its name was reserved.
 */
export function withoutTakers(capabilities: ResolvedCapability[], definitions: ToolDefinition[]): ToolDefinition[] {
  const names = new Set(capabilities.flatMap(({ capability }) => capability.tools.map(({ name }) => name)))
  const mayReplace = (one: ToolDefinition) => one.type === 'builtin' || (one.type === 'client_side' && one.replaces)
  return definitions.filter((one) => !isReservedName(one.name) && (mayReplace(one) || !names.has(one.name)))
}

/**
 * Returns the definitions of an agent and its session; the session's win. Without a policy, a session's definition of a
 * builtin tool keeps the agent's policy, so that a new display name does not remove an approval.
 */
export function mergeDefinitions(agentTools: ToolDefinition[], sessionTools: ToolDefinition[]): ToolDefinition[] {
  const merged = new Map(agentTools.map((definition) => [definition.name, definition]))
  for (const definition of sessionTools) {
    const before = merged.get(definition.name)
    const keepsPolicy = definition.type === 'builtin' && before?.type === 'builtin' && definition.policy === undefined
    merged.set(definition.name, keepsPolicy ? { ...definition, policy: before.policy } : definition)
  }
  return [...merged.values()]
}

const offerTool = (tool: Tool, config: unknown): OfferedTool => ({
  spec: { name: tool.name, description: tool.description, parameters: tool.parameters },
  displayName: tool.displayName,
  policy: policyOf(tool, 'auto'),
  tool,
  config,
})

/** Returns the policy of a tool. An agent can require approval, but cannot waive an administrator's requirement. */
const policyOf = (tool: Tool | undefined, policy: ToolPolicy): ToolPolicy =>
  tool?.needsApproval && policy === 'auto' ? 'requires_approval' : policy

const isClientRun = (definition: ToolDefinition): boolean =>
  definition.type === 'client_side' || definition.policy === 'client_side'

/** Offers a tool that the client runs. A `builtin` definition takes its texts from the capability's tool. */
const offerClientTool = (definition: ToolDefinition, builtin: OfferedTool | undefined): OfferedTool => {
  const { type, name, description, parameters, display_name } = definition
  if (type === 'builtin' && builtin !== undefined) {
    return { spec: builtin.spec, displayName: display_name || builtin.displayName, policy: 'client_side' }
  }
  return {
    // Providers require both, which a JSON Schema may omit.
    spec: { name, description, parameters: { type: 'object', properties: {}, ...parameters } },
    displayName: display_name || name,
    policy: 'client_side',
  }
}

/**
 * Applies a definition to a capability's tool. Undefined when no capability provides it or the definition is not of
 * type `builtin`.
 */
function adapt(offered: OfferedTool | undefined, definition: ToolDefinition): OfferedTool | undefined {
  if (offered === undefined || definition.type !== 'builtin') return undefined
  return {
    ...offered,
    displayName: definition.display_name || offered.displayName,
    policy: policyOf(offered.tool, definition.policy ?? 'auto'),
  }
}
