import type { AgentCapabilityConfig, ToolDefinition } from '../../contract/tools.ts'
import type { Deps } from '../conversation/deps.ts'
import type { Actor } from '../kit/actor.ts'
import { invalid } from '../kit/errors.ts'
import { checkSchemas } from '../tools/capabilities/arguments/check.ts'
import type { Capability } from '../tools/capabilities/capability.ts'
import { resolveCapabilities } from '../tools/capabilities/resolve.ts'
import { isReservedName } from '../tools/capabilities/toolset.ts'
import { checkTaskQueues } from '../tools/task-queues/read.ts'

/** Agent or session that defines tools. `known` are the organization's capabilities for the refs. */
export type ToolOwner = { what: 'agent' | 'session'; refs: AgentCapabilityConfig[]; known: Capability[] }

const MAX_NAMES_SHOWN = 50

/**
 * Throws `invalid` for parameters that are not the JSON Schema of an object, for a name of the service's own calls, for
 * a `builtin` definition that names no tool of its owner, and for a client tool that has a tool's name without `"replaces": true`. `before` is the owner's
 * previous state: definitions that had a wrong name in it are accepted.
 */
export async function checkTools(
  deps: Deps,
  actor: Pick<Actor, 'organizationId'>,
  tools: ToolDefinition[],
  owner: ToolOwner,
  before?: { tools: ToolDefinition[] } & Pick<ToolOwner, 'refs' | 'known'>,
): Promise<void> {
  const schemas = tools.map(({ parameters }) => parameters)
  const sharer = await deps.owners.ownerOf(actor.organizationId)
  const problems = await checkSchemas(deps.threads.schemas, schemas, sharer)
  const wrong = problems.findIndex((problem) => problem !== undefined)
  if (wrong !== -1) throw invalid(`tools.${wrong}.parameters: ${problems[wrong]}`)
  const problemNow = nameProblems(deps.capabilities, owner)
  const problemBefore = before && nameProblems(deps.capabilities, { ...owner, ...before })
  for (const [position, tool] of tools.entries()) {
    const problem = problemNow(tool)
    const wasThere = before?.tools.some((other) => isSame(tool, other)) && problemBefore?.(tool) !== undefined
    if (problem !== undefined && !wasThere) throw invalid(`tools.${position}.name: ${problem}`)
  }
  await checkTaskQueues(deps, actor, tools, before?.tools)
}

/**
 * Throws `invalid` when a session's new capabilities have a tool with the name of one of the agent's client tools.
 * Capabilities in `before`, the session's previous state, are accepted.
 */
export function checkAgentTools(
  agentTools: ToolDefinition[],
  sessionTools: ToolDefinition[],
  owner: Omit<ToolOwner, 'what'>,
  before: Omit<ToolOwner, 'what'>,
): void {
  const [providers, providersBefore] = [providersOf(owner), providersOf(before)]
  const own = new Set(sessionTools.map(({ name }) => name))
  for (const tool of agentTools) {
    const { name } = tool
    const provider = providers.get(name)
    if (tool.type === 'builtin' || replaces(tool) || own.has(name) || provider === undefined) continue
    if (providersBefore.has(name)) continue
    const sentence = 'which is also the name of a client tool of the agent; set "replaces": true on it, or rename it'
    throw invalid(`capabilities: ${provider} has a tool "${name}", ${sentence}`)
  }
}

const isSame = (tool: ToolDefinition, other: ToolDefinition): boolean =>
  tool.name === other.name && tool.type === other.type && policyOf(tool) === policyOf(other)

const policyOf = (tool: ToolDefinition) => (tool.type === 'builtin' ? (tool.policy ?? 'auto') : replaces(tool))

/** Whether a definition replaces a capability's tool. */
const replaces = (tool: ToolDefinition): boolean => tool.type === 'client_side' && tool.replaces === true

/** Maps the names of tools to the ids of their capabilities. */
const providersOf = ({ refs, known }: Omit<ToolOwner, 'what'>): Map<string, string> =>
  new Map(
    resolveCapabilities(refs, known).flatMap(({ capability: { id, tools } }) => tools.map(({ name }) => [name, id])),
  )

/** Returns a function that explains why a definition's name is wrong. */
function nameProblems(all: Capability[], { what, refs, known }: ToolOwner) {
  const providers = providersOf({ refs, known })
  return (tool: ToolDefinition): string | undefined => {
    const provider = providers.get(tool.name)
    if (isReservedName(tool.name))
      return `"${tool.name}" is the service's own name for its questions; choose another name`
    if (tool.type === 'client_side') {
      if (provider === undefined || tool.replaces) return undefined
      return `"${tool.name}" is a tool of ${provider}; choose another name, or say "replaces": true to have the client run it`
    }
    if (tool.type === 'temporal') return provider && `"${tool.name}" is a tool of ${provider}; choose another name`
    if (provider !== undefined || mayAppear(tool.name, refs, known)) return undefined
    return `the ${what} has no tool "${tool.name}"${wayOut(all, tool.name, [...providers.keys()])}`
  }
}

/** Whether the tool may belong to an MCP server that is unknown, or whose list of tools is. */
const mayAppear = (name: string, refs: AgentCapabilityConfig[], known: Capability[]): boolean =>
  refs.some(({ ref }) => {
    if (!ref.startsWith('mcp:')) return false
    const server = known.find(({ id }) => id === ref)
    if (server?.toolPrefix === undefined) return name.startsWith('mcp_')
    return !server.areServerToolsKnown && name.startsWith(server.toolPrefix)
  })

function wayOut(all: Capability[], name: string, names: string[]): string {
  const provider = all.find(({ tools }) => tools.some((tool) => tool.name === name))
  if (provider !== undefined) return `; the capability ${provider.id} has it`
  if (names.length === 0) return ', and none at all; GET /v1/capabilities lists them'
  const more = names.length - MAX_NAMES_SHOWN
  return `; its tools are: ${names.slice(0, MAX_NAMES_SHOWN).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
