import type { ToolDefinition } from '../../../contract/tools.ts'
import { cutAt } from '../../../lib/truncate.ts'
import type { Capability, Tool } from './capability.ts'
import { escapeTags } from './prompt.ts'
import type { ResolvedCapability } from './resolve.ts'
import { type ToolChoice, toolChoiceOf } from './server-config.ts'

/** Maximum number of tools in a prompt, the providers' own limit. */
export const MAX_TOOLS = 128
const MAX_NAMES_SHOWN = 50
const MAX_NAME_SHOWN = 128

/**
 * Removes tools of MCP servers that a configuration does not name, and tools beyond the limit: the service's and the
 * client's tools come first, then servers' tools in the order of their capabilities. The prompt of a capability says
 * which of its tools were removed, and which named tools its server does not have.
 */
export function withinToolLimit(
  capabilities: ResolvedCapability[],
  definitions: Pick<ToolDefinition, 'name'>[],
): ResolvedCapability[] {
  const taken = new Set([...definitions.map(({ name }) => name), ...ownNames(capabilities)])
  return capabilities.map((resolved) => {
    const { capability, config } = resolved
    if (capability.areServerToolsKnown === undefined) return resolved
    const choice = toolChoiceOf(config)
    const kept: Tool[] = []
    const leftOut: Tool[] = []
    for (const tool of chosenBy(choice, capability.tools)) {
      const fits = !isOfServer(tool) || taken.has(tool.name) || taken.size < MAX_TOOLS
      if (fits) taken.add(tool.name)
      const list = fits ? kept : leftOut
      list.push(tool)
    }
    const notes = [...configNotes(choice, capability), ...leftOutNotes(leftOut)]
    return { capability: { ...capability, ...withNotes(capability, notes), tools: kept }, config }
  })
}

const isOfServer = ({ nameAtServer }: Tool): boolean => nameAtServer !== undefined

const ownNames = (capabilities: ResolvedCapability[]): string[] =>
  capabilities.flatMap(({ capability: { tools } }) => tools.filter((tool) => !isOfServer(tool)).map(({ name }) => name))

const chosenBy = (choice: ToolChoice | undefined, tools: Tool[]): Tool[] =>
  tools.filter(({ nameAtServer: name }) => name === undefined || choice === 'all' || choice?.has(name))

/** Returns the notes about a configuration for a model and its user. */
function configNotes(choice: ToolChoice | undefined, { areServerToolsKnown, tools }: Capability): string[] {
  if (choice === undefined)
    return ['None of the tools is offered, because the configuration of this capability is wrong.']
  if (choice === 'all' || !areServerToolsKnown) return []
  const known = new Set(tools.map(({ nameAtServer }) => nameAtServer))
  // Written by a user, so they may have line breaks and tags.
  const unknown = [...choice]
    .filter((name) => !known.has(name))
    .map((name) => escapeTags(JSON.stringify(cutAt(name, MAX_NAME_SHOWN))))
  return unknown.length === 0 ? [] : [`The server has no tools named ${shortList(unknown)}.`]
}

/** Returns a note about the removed tools. Their names come from the service and need no escape. */
function leftOutNotes(leftOut: Tool[]): string[] {
  if (leftOut.length === 0) return []
  return [
    `At most ${MAX_TOOLS} tools can be offered at once. ${leftOut.length} of this capability are left out and cannot ` +
      `be called: ${shortList(leftOut.map(({ name }) => name))}.`,
  ]
}

function shortList(names: string[]): string {
  const more = names.length - MAX_NAMES_SHOWN
  return `${names.slice(0, MAX_NAMES_SHOWN).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** Adds notes to a fixed prompt. */
function withNotes({ systemPrompt }: Capability, notes: string[]): Pick<Capability, 'systemPrompt'> {
  if (notes.length === 0 || typeof systemPrompt === 'function') return {}
  return { systemPrompt: [systemPrompt, ...notes].filter(Boolean).join('\n\n') }
}
