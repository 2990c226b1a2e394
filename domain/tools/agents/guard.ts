import type { ToolDefinition } from '../../../contract/tools.ts'
import { isGuard } from '../capabilities/guard.ts'
import type { ResolvedCapability } from '../capabilities/resolve.ts'
import { ASKING, plainNameOf } from './capability.ts'

/**
 * Holds the tools that ask agents while a definition guards such a tool that there is no more: its agent may have been renamed,
 * and its tool with it. A tool is held, too, while another agent's tool has its plain name, and that name is guarded: the guard
 * may have been written for it. A tool with a policy of its own is not held.
 */
export function guardAgents(capabilities: ResolvedCapability[], definitions: ToolDefinition[]): ResolvedCapability[] {
  const guards = new Set(definitions.filter((one) => isGuard(one, ASKING)).map(({ name }) => name))
  if (guards.size === 0) return capabilities
  const names = new Set(capabilities.flatMap(({ capability }) => capability.tools.map(({ name }) => name)))
  const isAnyLost = [...guards].some((name) => !names.has(name))
  return capabilities.map(({ capability, config }) => {
    const isHeld = isAnyLost || guards.has(plainNameOf(capability.name))
    const tools = capability.tools.map((tool) =>
      tool.asks === undefined || guards.has(tool.name) || !isHeld ? tool : { ...tool, needsApproval: true },
    )
    return { capability: { ...capability, tools }, config }
  })
}
