import type { McpServerId } from '../../../contract/kit/ids.ts'
import type {
  GetMcpPromptRequest,
  McpPromptList,
  McpPromptMessages,
  McpResourceContents,
  McpResourceList,
} from '../../../contract/mcp-reading.ts'
import { createFairQueue } from '../../../lib/fair-queue.ts'
import type { Actor } from '../../kit/actor.ts'
import { badGateway, conflict, invalid, notFound, tooMany } from '../../kit/errors.ts'
import { toId } from '../../kit/ids.ts'
import { SecretRefused } from '../../kit/organization-secrets/resolve.ts'
import { ToolError } from '../capabilities/capability.ts'
import type { Deps } from '../deps.ts'
import { McpFailure, type Visit } from '../mcp/protocol/client.ts'
import { fillPrompt, LIST_PROMPTS } from '../mcp/reading/prompts.ts'
import { LIST_RESOURCES, readResource } from '../mcp/reading/resources.ts'
import { SignInFailure } from '../mcp/sign-in/flow.ts'
import { damagedCredentials, isDamaged } from './credentials.ts'
import { endpointOf } from './endpoint.ts'
import { SignInNeeded, withToken } from './grants/with-token.ts'
import { oauthOf } from './oauth.ts'
import type { UsedServer } from './read-for-use.ts'

/** Caller of an operation, and the signal that aborts when nobody waits for its answer any more. */
type Asking = { actor: Actor; signal: AbortSignal }

/** Lists the resources of a server and their templates. Throws as `visitServer` does. */
export async function listResources(deps: Deps, asking: Asking, id: McpServerId): Promise<McpResourceList> {
  const { resources, templates } = await visitServer(deps, asking, id, LIST_RESOURCES)
  return { data: resources.items, templates: templates.items, complete: resources.isComplete && templates.isComplete }
}

/** Reads a resource. Throws `not_found`, and as `visitServer` does. */
export async function getResource(
  deps: Deps,
  asking: Asking,
  id: McpServerId,
  uri: string,
): Promise<McpResourceContents> {
  const contents = await visitServer(deps, asking, id, readResource(uri))
  if (contents === undefined) throw notFound('Resource of the MCP server')
  return { contents }
}

/** Lists the prompts of a server. Throws as `visitServer` does. */
export async function listPrompts(deps: Deps, asking: Asking, id: McpServerId): Promise<McpPromptList> {
  const { items, isComplete } = await visitServer(deps, asking, id, LIST_PROMPTS)
  return { data: items, complete: isComplete }
}

/** Fills in a prompt. Throws `not_found`, `invalid` for arguments that it does not take, and as `visitServer` does. */
export async function getPrompt(
  deps: Deps,
  asking: Asking,
  id: McpServerId,
  { name, arguments: args }: GetMcpPromptRequest,
): Promise<McpPromptMessages> {
  const prompt = await visitServer(deps, asking, id, fillPrompt(name, args ?? {}))
  if (prompt === undefined) throw notFound('Prompt of the MCP server')
  if ('refusal' in prompt) throw invalid(`arguments: must fit the prompt; the MCP server says: ${prompt.refusal}`)
  return prompt
}

/** Visits of one process. Fewer than discoveries, which turns wait for. */
const AT_ONCE = 32
const AT_ONCE_OF_OWNER = 4
const WAIT_MS = 10_000
const RETRY_AFTER_SECONDS = 5

export const createMcpVisits = () => createFairQueue(AT_ONCE, WAIT_MS, { maxOfOwner: AT_ONCE_OF_OWNER })

/**
 * Visits a server, signed in as the caller or the organization where it wants that. Throws `not_found`, `conflict` for
 * a disabled server and without a sign-in, `too_many`, and `bad_gateway` for a failure of the server.
 */
async function visitServer<T>(deps: Deps, { actor, signal }: Asking, id: McpServerId, purpose: Visit<T>): Promise<T> {
  const { organizationId } = actor
  const row = await deps.db.mcpServer.findUnique({ where: { organizationId_id: { organizationId, id } } })
  if (row === null) throw notFound('MCP server')
  if (row.status === 'disabled') throw conflict('The MCP server is disabled; an administrator can activate it')
  const owner = await deps.owners.ownerOf(organizationId)
  const refuse = () => {
    throw tooMany('Too many requests wait for MCP servers; try again soon', RETRY_AFTER_SECONDS)
  }
  try {
    return await deps.mcpVisits.run({ owner }, () => visitAs(deps, actor, row, signal, purpose), refuse, signal)
  } catch (error) {
    throw inWords(row, error)
  }
}

async function visitAs<T>(
  deps: Deps,
  { organizationId, userId }: Actor,
  row: UsedServer,
  signal: AbortSignal,
  purpose: Visit<T>,
): Promise<T> {
  const endpoint = await endpointOf(deps, row)
  const oauth = oauthOf(row)
  if (oauth === undefined) return deps.mcp.visit(endpoint, purpose, signal)
  const holder = oauth.as === 'organization' ? organizationId : userId
  return withToken(deps, row, holder, endpoint, signal, (signedIn) => deps.mcp.visit(signedIn, purpose, signal))
}

/** Returns the answer for an error of a visit. */
function inWords(row: UsedServer, error: unknown): unknown {
  if (error instanceof SignInNeeded) {
    const who = oauthOf(row)?.as === 'organization' ? 'an administrator has to sign in' : 'sign in'
    const scope = error.scope === undefined ? '' : `, with the scope ${error.scope.slice(0, 200)}`
    return conflict(
      `The MCP server needs a sign-in${scope}; ${who} by POST /v1/mcp-servers/${toId('mcp', row.id)}/connect`,
    )
  }
  if (error instanceof SecretRefused) return conflict(error.message)
  if (isDamaged(error)) return conflict(damagedCredentials(row.name))
  const isOfServer = [ToolError, McpFailure, SignInFailure].some((known) => error instanceof known)
  return isOfServer && error instanceof Error ? badGateway(error.message) : error
}
