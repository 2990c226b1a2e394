import type { ToolDefinition } from '../../../contract/tools.ts'
import type { Capability, Tool } from './capability.ts'
import type { ResolvedCapability } from './resolve.ts'

/** Prefix of the names of all MCP servers' tools. */
const OF_SERVERS = 'mcp_'

/**
 * Guards tools of MCP servers that were renamed after their guard was written. A guard applies to each server with a
 * present or former prefix that begins the guard's name, or to all servers if there is no such server. It protects the
 * tool that it names. While a server does not list that tool, all the server's tools wait for approval, except tools
 * with their own policy under a name that the server has never changed. `inactive` are the prefixes of known servers
 * that are not in use.
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
    .filter((definition) => isGuard(definition, OF_SERVERS))
    .map(({ name }) => name)

/** Whether a definition determines who runs a tool. A new display name alone does not remove an approval. */
const hasPolicy = (definition: ToolDefinition | undefined): boolean =>
  definition !== undefined && (definition.type === 'client_side' || definition.policy !== undefined)

/** Whether a definition guards a tool whose name has the prefix: it takes the decision to run it from the model. */
export const isGuard = (definition: ToolDefinition, prefix: string): boolean =>
  definition.type === 'builtin' &&
  definition.policy !== undefined &&
  definition.policy !== 'auto' &&
  definition.name.startsWith(prefix)
