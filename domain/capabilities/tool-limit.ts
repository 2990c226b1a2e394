import type { ToolDefinition } from '../../contract/tools.ts'
import { isRecord } from '../../lib/is-record.ts'
import type { Capability, Tool } from './capability.ts'
import type { ResolvedCapability } from './resolve.ts'

/** Limit on the tools of a prompt, as providers have it. */
export const MAX_TOOLS = 128
const MAX_NAMES_SHOWN = 50

/**
 * Leaves out tools of MCP servers that a configuration does not name, and those for which there is no room: the
 * service's and the client's tools come first, and servers' tools in the order of their capabilities. The prompt of a
 * capability says which of its tools are missing.
 */
export function withinToolLimit(
  capabilities: ResolvedCapability[],
  definitions: Pick<ToolDefinition, 'name'>[],
): ResolvedCapability[] {
  const taken = new Set([...definitions.map(({ name }) => name), ...ownNames(capabilities)])
  return capabilities.map((resolved) => {
    const { capability, config } = resolved
    if (!capability.tools.some(isOfServer)) return resolved
    const kept: Tool[] = []
    const leftOut: Tool[] = []
    for (const tool of chosenBy(config, capability.tools)) {
      const fits = !isOfServer(tool) || taken.has(tool.name) || taken.size < MAX_TOOLS
      if (fits) taken.add(tool.name)
      const list = fits ? kept : leftOut
      list.push(tool)
    }
    return { capability: { ...capability, ...withNote(capability, leftOut), tools: kept }, config }
  })
}

const isOfServer = ({ nameAtServer }: Tool): boolean => nameAtServer !== undefined

const ownNames = (capabilities: ResolvedCapability[]): string[] =>
  capabilities.flatMap(({ capability: { tools } }) => tools.filter((tool) => !isOfServer(tool)).map(({ name }) => name))

/** Returns the tools that `{tools: [names]}` names. Any other configuration chooses all. */
function chosenBy(config: unknown, tools: Tool[]): Tool[] {
  const names = isRecord(config) ? config.tools : undefined
  if (!Array.isArray(names) || !names.every((name) => typeof name === 'string')) return tools
  const chosen = new Set(names)
  return tools.filter(({ nameAtServer }) => nameAtServer === undefined || chosen.has(nameAtServer))
}

/** Adds to a fixed prompt which tools are missing. Their names are those of the service, so they need no escape. */
function withNote({ systemPrompt }: Capability, leftOut: Tool[]): Pick<Capability, 'systemPrompt'> {
  if (leftOut.length === 0 || typeof systemPrompt === 'function') return {}
  const names = leftOut.slice(0, MAX_NAMES_SHOWN).map(({ name }) => name)
  const more = leftOut.length - names.length
  const note =
    `At most ${MAX_TOOLS} tools can be offered at once. ${leftOut.length} of this capability are left out and cannot ` +
    `be called: ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}.`
  return { systemPrompt: systemPrompt ? `${systemPrompt}\n\n${note}` : note }
}
