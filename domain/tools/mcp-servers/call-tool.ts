import { toId } from '../../kit/ids.ts'
import { SecretRefused } from '../../kit/organization-secrets/resolve.ts'
import { type ToolContext, ToolError } from '../capabilities/capability.ts'
import { type Answers, InputRequired } from '../capabilities/questions.ts'
import type { ToolOutput } from '../capabilities/tool-output.ts'
import type { Deps } from '../deps.ts'
import type { McpCall, McpEndpoint } from '../mcp/protocol/client.ts'
import { SignInFailure } from '../mcp/sign-in/flow.ts'
import { damagedCredentials, isDamaged } from './credentials.ts'
import { endpointOf } from './endpoint.ts'
import { SignInNeeded, withToken } from './grants/with-token.ts'
import { type Oauth, oauthOf } from './oauth.ts'
import type { UsedServer } from './read-for-use.ts'

/** Question of this service itself, which no server gets to know. */
const SIGN_IN = { key: 'sign_in', state: 'sign_in at the MCP server' }

/** Calls a tool of a server, signed in as the organization or as the turn's author where the server needs that. */
export async function callTool(deps: Deps, row: UsedServer, run: ToolContext, call: McpCall): Promise<ToolOutput> {
  const endpoint = await connect(deps, row)
  const oauth = oauthOf(row)
  if (oauth === undefined) return run.mcp.call(endpoint, call)
  try {
    return await callSignedIn(deps, row, oauth, run, endpoint, call)
  } catch (error) {
    throw error instanceof SignInFailure ? new ToolError(error.message) : error
  }
}

async function callSignedIn(
  deps: Deps,
  row: UsedServer,
  oauth: Oauth,
  { mcp, userId }: ToolContext,
  endpoint: McpEndpoint,
  given: McpCall,
): Promise<ToolOutput> {
  const holder = oauth.as === 'organization' ? row.organizationId : userId
  if (holder === null) throw new ToolError(`The MCP server ${row.name} acts for users, and no user wrote this message.`)
  if (given.answers.some(isDeclined)) throw new ToolError(`The user did not sign in at the MCP server ${row.name}.`)
  const call = { ...given, answers: given.answers.filter(({ state }) => state !== SIGN_IN.state) }
  try {
    return await withToken(deps, row, holder, endpoint, call.signal, (signedIn) => mcp.call(signedIn, call))
  } catch (error) {
    throw error instanceof SignInNeeded ? needsSignIn(deps, row, oauth, error.scope) : error
  }
}

const isDeclined = ({ state, answers }: Answers): boolean =>
  state === SIGN_IN.state && answers[SIGN_IN.key]?.action !== 'accept'

/** Returns the question that sends the user to the sign-in, or the failure that sends an administrator there. */
function needsSignIn({ apiUrl }: Deps, { organizationId, id, name }: UsedServer, { as }: Oauth, scope?: string): Error {
  const url = `${apiUrl}/v1/mcp-servers/${toId('mcp', id)}/connect?org=${toId('org', organizationId)}`
  const what = scope === undefined ? '' : ` with the scope ${scope.slice(0, 200)}`
  if (as === 'organization') {
    return new ToolError(
      `The service has to sign in at the MCP server ${name}${what}; an administrator can connect it.`,
    )
  }
  const message = `Sign in at ${name}${what}, so that the agent can use it as you. Accept when you have done so.`
  return new InputRequired([{ key: SIGN_IN.key, message, url }], SIGN_IN.state)
}

async function connect(deps: Deps, row: UsedServer): Promise<McpEndpoint> {
  try {
    return await endpointOf(deps, row)
  } catch (error) {
    if (error instanceof SecretRefused) throw new ToolError(error.message)
    if (isDamaged(error)) throw new ToolError(`${damagedCredentials(row.name)}.`)
    throw error
  }
}
