import type { CapabilityInfo } from '../../../contract/capabilities.ts'
import type { ToolDefinition } from '../../../contract/tools.ts'
import type { Capability, Tool } from './capability.ts'

/** Presents a capability that is not disabled. */
export const presentCapability = (capability: Capability): CapabilityInfo => ({
  id: capability.id,
  name: capability.name,
  description: capability.description,
  status: capability.status === 'coming_soon' ? 'coming_soon' : 'available',
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
  policy: tool.needsApproval ? 'requires_approval' : 'auto',
})
