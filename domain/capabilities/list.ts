import type { CapabilityInfo } from '../../contract/capabilities.ts'
import type { ToolDefinition } from '../../contract/tools.ts'
import type { Deps } from '../deps.ts'
import { notFound } from '../errors.ts'
import type { Capability, Tool } from './capability.ts'

export const listCapabilities = (deps: Deps): CapabilityInfo[] => deps.capabilities.map(presentCapability)

/** Returns a capability by its id. Throws `not_found`. */
export function getCapability(deps: Deps, id: string): CapabilityInfo {
  const capability = deps.capabilities.find((candidate) => candidate.id === id)
  if (capability === undefined) throw notFound('Capability')
  return presentCapability(capability)
}

const presentCapability = (capability: Capability): CapabilityInfo => ({
  id: capability.id,
  name: capability.name,
  description: capability.description,
  status: capability.status,
  category: capability.category,
  dependencies: capability.dependencies,
  features: capability.features,
  icon: capability.icon ?? null,
  is_mcp: capability.id.startsWith('mcp:'),
  is_skill: capability.id.startsWith('skill:'),
  system_prompt: typeof capability.systemPrompt === 'string' ? capability.systemPrompt : null,
  tool_definitions: capability.tools.map(presentTool),
})

const presentTool = (tool: Tool): ToolDefinition => ({
  type: 'builtin',
  name: tool.name,
  description: tool.description,
  parameters: tool.parameters,
  display_name: tool.displayName,
  policy: 'auto',
})
