import type { ToolDefinition } from '../../../contract/tools.ts'
import { isGuard } from '../capabilities/guard.ts'
import type { ResolvedCapability } from '../capabilities/resolve.ts'
import { ASKING } from './capability.ts'

/**
 * Holds the tools that ask agents while a definition guards such a tool that there is no more: its agent may have been renamed,
 * and its tool with it. A tool with a policy of its own is not held.
 */
export function guardAgents(capabilities: ResolvedCapability[], definitions: ToolDefinition[]): ResolvedCapability[] {
  const guards = definitions.filter((definition) => isGuard(definition, ASKING))
  if (guards.length === 0) return capabilities
  const names = new Set(capabilities.flatMap(({ capability }) => capability.tools.map(({ name }) => name)))
  if (guards.every(({ name }) => names.has(name))) return capabilities
  const own = new Set(guards.map(({ name }) => name))
  return capabilities.map(({ capability, config }) => {
    const tools = capability.tools.map((tool) =>
      tool.asks === undefined || own.has(tool.name) ? tool : { ...tool, needsApproval: true },
    )
    return { capability: { ...capability, tools }, config }
  })
}
