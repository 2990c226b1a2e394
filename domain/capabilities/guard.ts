import type { ToolDefinition } from '../../contract/tools.ts'
import type { ResolvedCapability } from './resolve.ts'

/** Beginning of the names of all tools of MCP servers. */
const OF_SERVERS = 'mcp_'

/**
 * Guards tools of MCP servers that may be others' under a new name. While a definition guards a tool that its server
 * does not list, each tool of that server that no definition names waits for approval; where no server has such names,
 * that goes for all of them, because a server may have been renamed.
 */
export function guardRenamed(capabilities: ResolvedCapability[], definitions: ToolDefinition[]): ResolvedCapability[] {
  const byName = new Map(definitions.map((definition) => [definition.name, definition]))
  const listed = new Set(capabilities.flatMap(({ capability }) => capability.tools.map(({ name }) => name)))
  const lost = [...byName.values()].filter((definition) => isGuard(definition) && !listed.has(definition.name))
  if (lost.length === 0) return capabilities
  const prefixes = capabilities.flatMap(({ capability }) => capability.toolPrefix ?? [])
  const isHeld = (prefix: string) =>
    lost.some(({ name }) => name.startsWith(prefix) || !prefixes.some((other) => name.startsWith(other)))
  return capabilities.map((resolved) => {
    const { capability } = resolved
    if (capability.toolPrefix === undefined || !isHeld(capability.toolPrefix)) return resolved
    const tools = capability.tools.map((tool) => (byName.has(tool.name) ? tool : { ...tool, needsApproval: true }))
    return { ...resolved, capability: { ...capability, tools } }
  })
}

const isGuard = (definition: ToolDefinition): boolean =>
  definition.type === 'builtin' &&
  definition.policy !== undefined &&
  definition.policy !== 'auto' &&
  definition.name.startsWith(OF_SERVERS)
