import type { ToolDefinition } from '../../../contract/tools.ts'
import type { Capability, Tool } from './capability.ts'
import type { ResolvedCapability } from './resolve.ts'

/** Beginning of the names of all tools of MCP servers. */
const OF_SERVERS = 'mcp_'

/**
 * Guards tools of MCP servers that were renamed after their guard was written. A guard is for each server whose present
 * or former prefix begins its name, or for all servers if there is none. It holds the tool that it names. While such a
 * server does not list that tool, all its tools wait for approval, except tools with a policy of their own under a name
 * that the server has never changed. `inactive` are the prefixes of known servers that are not in use.
 */
export function guardRenamed(
  capabilities: ResolvedCapability[],
  definitions: ToolDefinition[],
  inactive: string[] = [],
): ResolvedCapability[] {
  const byName = new Map(definitions.map((definition) => [definition.name, definition]))
  const unknown = new Set(unknownGuards(capabilities, definitions).filter((name) => !beginsWith(name, inactive)))
  const guards = guardsOf(definitions)
  if (guards.length === 0) return capabilities
  return capabilities.map((resolved) => {
    const { capability } = resolved
    const { toolPrefix, formerPrefixes = [] } = capability
    if (toolPrefix === undefined) return resolved
    const listed = new Set(capability.tools.flatMap(namesOf))
    const former = guards.filter((name) => beginsWith(name, formerPrefixes))
    const isLost = (name: string) => !listed.has(name)
    const isAnyLost = guards.some((name) => (name.startsWith(toolPrefix) || unknown.has(name)) && isLost(name))
    const isFormerLost = former.some(isLost)
    const isHeld = ({ name, formerNames = [] }: Tool) =>
      isFormerLost || formerNames.some((one) => former.includes(one)) || (isAnyLost && !hasPolicy(byName.get(name)))
    const tools = capability.tools.map((tool) => (isHeld(tool) ? { ...tool, needsApproval: true } : tool))
    return { ...resolved, capability: { ...capability, tools } }
  })
}

/** Returns the names of guards that begin with no capability's present or former prefix. */
export function unknownGuards(capabilities: ResolvedCapability[], definitions: ToolDefinition[]): string[] {
  const known = capabilities.flatMap(({ capability }) => prefixesOf(capability))
  return guardsOf(definitions).filter((name) => !beginsWith(name, known))
}

const beginsWith = (name: string, prefixes: string[]): boolean => prefixes.some((prefix) => name.startsWith(prefix))

const prefixesOf = ({ toolPrefix, formerPrefixes = [] }: Capability): string[] =>
  toolPrefix === undefined ? [] : [toolPrefix, ...formerPrefixes]

const namesOf = ({ name, formerNames = [] }: Tool): string[] => [name, ...formerNames]

const guardsOf = (definitions: ToolDefinition[]): string[] =>
  [...new Map(definitions.map((definition) => [definition.name, definition])).values()]
    .filter(isGuard)
    .map(({ name }) => name)

/** Whether a definition says who runs a tool. Another display name alone takes no approval away. */
const hasPolicy = (definition: ToolDefinition | undefined): boolean =>
  definition !== undefined && (definition.type === 'client_side' || definition.policy !== undefined)

const isGuard = (definition: ToolDefinition): boolean =>
  definition.type === 'builtin' &&
  definition.policy !== undefined &&
  definition.policy !== 'auto' &&
  definition.name.startsWith(OF_SERVERS)
