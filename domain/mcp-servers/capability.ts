import { cutAt } from '../../lib/truncate.ts'
import type { McpServer } from '../../prisma/generated/client.ts'
import { type Capability, type Tool, ToolError } from '../capabilities/capability.ts'
import type { Deps } from '../deps.ts'
import type { McpEndpoint } from '../mcp/client.ts'
import { damagedCredentials, isDamaged } from './credentials.ts'
import { expireTools, isStale, refreshSoon } from './discover.ts'
import { endpointOf } from './endpoint.ts'
import { throttle } from './throttle.ts'
import { nameTools } from './tool-names.ts'
import { acceptedOf, type LeftOut, type StoredTool, toolsOf } from './tools.ts'

/** Longer than the client lets a call take that reports progress, so that the client's limit is what is reported. */
const CALL_MS = 10 * 60_000 + 30_000
/** A server may say as often as it likes that its tools have changed. */
const EXPIRE_EACH_MS = 1000
const MAX_DISPLAY_NAME = 300
const MAX_LEFT_OUT_SHOWN = 10

/** Returns the capability of an MCP server: its tools, as they were last read. */
export function serverCapability(deps: Deps, row: McpServer): Capability {
  const found = toolsOf(row)
  const { named, leftOut } = nameTools(row.slug, found?.tools ?? [])
  return {
    id: `mcp:${row.id}`,
    name: row.name,
    description: describe(row, [...(found?.leftOut ?? []), ...leftOut]),
    status: row.status === 'active' ? 'available' : 'disabled',
    category: 'mcp',
    icon: 'plug',
    dependencies: [],
    features: [],
    ...(found === undefined && row.toolsError !== null && { systemPrompt: unavailable(row.name) }),
    ...(isStale(row) && { freshen: (signal) => refreshSoon(deps, row, signal) }),
    tools: named.map(({ name, tool }) => toTool(deps, row, name, tool)),
  }
}

/** Adds to a server's description which tools cannot be used. */
function describe({ description }: McpServer, leftOut: LeftOut[]): string {
  const own = description ?? ''
  if (leftOut.length === 0) return own
  const shown = leftOut.slice(0, MAX_LEFT_OUT_SHOWN).map(({ name, reason }) => `${name} (${reason})`)
  const more = leftOut.length - shown.length
  const sentence = `Tools left out: ${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}.`
  return own === '' ? sentence : `${own}\n\n${sentence}`
}

const unavailable = (name: string): string =>
  `The tools of the MCP server ${quoted(name)} are not available at the moment, because they could not be read.`

/** A name must not end its part of the prompt. */
const quoted = (name: string): string => JSON.stringify(name).replaceAll('<', '&lt;')

function toTool(deps: Deps, row: McpServer, name: string, tool: StoredTool): Tool {
  const isAccepted = acceptedOf(row)?.[tool.name] === tool.fingerprint
  return {
    name,
    nameAtServer: tool.name,
    displayName: cutAt(`${row.name}: ${tool.title || tool.name}`, MAX_DISPLAY_NAME),
    description: tool.description,
    // Providers require both.
    parameters: { type: 'object', properties: {}, ...tool.inputSchema },
    schemaOwner: 'stranger',
    needsApproval: row.toolsPolicy === 'ask' && !isAccepted,
    timeoutMs: CALL_MS,
    mayRunAgain: tool.isReadOnly || tool.isIdempotent,
    run: async (args, { mcp, sessionId, idempotencyKey, answers, signal }) =>
      mcp.call(connect(deps, row), {
        tool: tool.name,
        arguments: args,
        inputSchema: tool.inputSchema,
        sessionId,
        idempotencyKey,
        answers,
        onToolsChanged: throttle(() => expireTools(deps, row), EXPIRE_EACH_MS),
        signal,
      }),
  }
}

function connect(deps: Deps, row: McpServer): McpEndpoint {
  try {
    return endpointOf(deps, row)
  } catch (error) {
    if (isDamaged(error)) throw new ToolError(`${damagedCredentials(row.name)}.`)
    throw error
  }
}
