import type { AgentCapabilityConfig, ToolDefinition } from '../../contract/tools.ts'

type Part = { capabilities: AgentCapabilityConfig[]; tools: ToolDefinition[] }
type Stored = { capabilities: unknown; tools?: unknown }

/** Returns what a session has from its agent: nothing without one, and nothing with a draft in its place. */
export function agentPartOf(agent: Stored | null | undefined, hasDraft: boolean): Part {
  if (agent == null || hasDraft) return { capabilities: [], tools: [] }
  // Validated by the contract when they were written.
  return {
    capabilities: agent.capabilities as AgentCapabilityConfig[],
    tools: (agent.tools ?? []) as ToolDefinition[],
  }
}
