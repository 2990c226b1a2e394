import { cutAt } from '../../../lib/truncate.ts'
import type { Capability, Tool } from '../capabilities/capability.ts'
import { escapeTags } from '../capabilities/prompt.ts'
import type { Deps } from '../deps.ts'
import { callTool } from './call-tool.ts'
import { expireTools, isStale, refreshSoon } from './discover.ts'
import type { UsedServer } from './read-for-use.ts'
import { nameTools, toolNameOf } from './tool-names.ts'
import { acceptedOf, type LeftOut, type StoredTool, type StoredTools, toolsOf, versionOf } from './tools.ts'

/** Longer than the client's limit for a call that reports progress, so that the client's limit is reported. */
const CALL_MS = 10 * 60_000 + 30_000
const MAX_DISPLAY_NAME = 300
const MAX_LEFT_OUT_SHOWN = 10

/** Returns the capability of an MCP server, with its tools as last read. */
export function serverCapability(deps: Deps, row: UsedServer): Capability {
  const found = toolsOf(row)
  const { named, leftOut } = nameTools(row.slug, found?.tools ?? [])
  const accepted = acceptedOf(row)
  const why = whyWithout(row)
  const systemPrompt = why ?? instructionsOf(row, found)
  return {
    id: `mcp:${row.id}`,
    name: row.name,
    description: describe(row, [...(found?.leftOut ?? []), ...leftOut]),
    status: row.status === 'active' ? 'available' : 'disabled',
    category: 'mcp',
    icon: 'plug',
    dependencies: [],
    features: [],
    ...(systemPrompt !== undefined && { systemPrompt }),
    ...(isStale(row) && { freshen: (signal) => refreshSoon(deps, row, signal) }),
    areServerToolsKnown: why === undefined,
    toolPrefix: toolNameOf(row.slug, ''),
    formerPrefixes: row.formerSlugs.map((slug) => toolNameOf(slug, '')),
    tools: named.map(({ name, tool }) =>
      toTool(deps, row, { name, tool, isAccepted: accepted?.get(tool.name) === tool.fingerprint }),
    ),
  }
}

/** Adds the unusable tools to a server's description, and the time of the list that an administrator would accept. */
function describe({ description, toolsChangedAt }: UsedServer, leftOut: LeftOut[]): string {
  const parts = [description ?? '']
  if (leftOut.length > 0) {
    const shown = leftOut.slice(0, MAX_LEFT_OUT_SHOWN).map(({ name, reason }) => `${name} (${reason})`)
    const more = leftOut.length - shown.length
    parts.push(`Tools left out: ${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}.`)
  }
  if (toolsChangedAt !== null) {
    const at = toolsChangedAt.toISOString()
    parts.push(`Tools changed at ${at}; to accept these, PATCH the MCP server's accept_tools_changed_at to that time.`)
  }
  return parts.filter((part) => part !== '').join('\n\n')
}

/** Returns a server's instructions. Empty with the policy `ask`: instructions cannot be accepted. */
function instructionsOf({ name, toolsPolicy }: UsedServer, found: StoredTools | undefined): string | undefined {
  const { instructions } = found ?? {}
  if (instructions === undefined || instructions === '' || toolsPolicy === 'ask') return undefined
  return `Instructions of the MCP server ${quoted(name)} for its tools:\n${escapeTags(instructions)}`
}

/** Returns the reason why a server has no tools. Undefined if they are known. */
function whyWithout({ name, tools, toolsError, isTooMuch }: UsedServer): string | undefined {
  if (isTooMuch) {
    return `The tools of the MCP server ${quoted(name)} are left out, because the lists of tools of all servers are too large together.`
  }
  if (tools !== null) return undefined
  if (toolsError === null) return `The tools of the MCP server ${quoted(name)} have not been read yet.`
  return `The tools of the MCP server ${quoted(name)} are not available at the moment, because they could not be read.`
}

/** Prevents a name from ending its part of the prompt. */
const quoted = (name: string): string => JSON.stringify(name).replaceAll('<', '&lt;')

type Named = { name: string; tool: StoredTool; isAccepted: boolean }

function toTool(deps: Deps, row: UsedServer, { name, tool, isAccepted }: Named): Tool {
  return {
    name,
    nameAtServer: tool.name,
    formerNames: row.formerSlugs.map((slug) => toolNameOf(slug, tool.name)),
    version: versionOf(row.id, tool),
    displayName: cutAt(`${row.name}: ${tool.title || tool.name}`, MAX_DISPLAY_NAME),
    description: tool.description,
    // Providers require both.
    parameters: { type: 'object', properties: {}, ...tool.inputSchema },
    schemaOwner: 'external',
    isForeign: true,
    needsApproval: row.toolsPolicy === 'ask' && !isAccepted,
    timeoutMs: CALL_MS,
    mayRunAgain: tool.isReadOnly || tool.isIdempotent,
    run: async (args, run) =>
      callTool(deps, row, run, {
        tool: tool.name,
        arguments: args,
        inputSchema: tool.inputSchema,
        sessionId: run.sessionId,
        idempotencyKey: run.idempotencyKey,
        answers: run.answers,
        onProgress: run.report,
        onToolsChanged: () => void expireTools(deps, row),
        signal: run.signal,
      }),
  }
}
