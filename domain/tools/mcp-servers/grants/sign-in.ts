import { randomUUID } from 'node:crypto'
import type { McpServerId } from '../../../../contract/kit/ids.ts'
import type { McpGrant, McpServer as ServerRow } from '../../../../prisma/generated/client.ts'
import type { Actor, Origin } from '../../../kit/actor.ts'
import { audit, audited } from '../../../kit/audit/entry.ts'
import { badGateway, conflict, forbidden, invalid, notFound, unauthenticated } from '../../../kit/errors.ts'
import type { Deps } from '../../deps.ts'
import { type Begun, beginSignIn, finishSignIn, SignInFailure } from '../../mcp/sign-in/flow.ts'
import { readCredentials } from '../credentials.ts'
import { expireTools, refreshTools } from '../discover.ts'
import { type Oauth, oauthOf } from '../oauth.ts'
import { ENDED, type GrantKey, keyOf, MCP_PENDING, seal, tokenColumns, unseal, withFetch } from './grant.ts'

/** Time for signing in at the other service. */
const PENDING_MS = 10 * 60_000

export const callbackUrl = ({ apiUrl }: Deps): string => `${apiUrl}/v1/mcp-sign-in/callback`

/**
 * Begins a sign-in at a server, and returns where the browser has to go. A later one replaces it. Throws `not_found`,
 * `forbidden`, `conflict` for a server without sign-in, and `bad_gateway`.
 */
export async function beginGrant(deps: Deps, actor: Actor, id: McpServerId): Promise<string> {
  const { row, oauth, key, userId } = await requireHolder(deps, actor, id)
  const where = { organizationId_serverId_holderId: key }
  const before = await deps.db.mcpGrant.upsert({ where, create: { ...key, userId }, update: {} })
  const state = randomUUID()
  const scope = [...oauth.scopes, before.scope ?? '', before.wantedScope ?? ''].join(' ').trim()
  const server = {
    url: row.url,
    redirectUrl: callbackUrl(deps),
    client: clientOf(deps, row, oauth),
    scope: scope === '' ? undefined : scope,
  }
  const { location, begun } = await inWords(withFetch(deps, (fetchFn) => beginSignIn(fetchFn, server, state)))
  const pending = {
    pending: seal(deps, MCP_PENDING, key, begun),
    state,
    pendingUserId: actor.userId,
    pendingUntil: new Date(Date.now() + PENDING_MS),
  }
  const { count } = await deps.db.mcpGrant.updateMany({ where: key, data: pending })
  if (count === 0) throw conflictOfChange()
  return location
}

/** Returns a user as a member of the organization that a link names. Throws `not_found`. */
export async function inOrganization({ db }: Deps, actor: Actor, named: string | undefined): Promise<Actor> {
  if (named === undefined || named === actor.organizationId) return actor
  const { userId } = actor
  const where = { userId_organizationId: { userId, organizationId: named } }
  // An API key belongs to one organization.
  const member = actor.apiKeyId === null ? await db.member.findUnique({ where }) : null
  if (member === null) throw notFound('MCP server')
  return { ...actor, organizationId: named, role: member.role }
}

/** Answer of the authorization server, and the users who are signed in in the browser: undefined without sign-in here. */
type Callback = {
  state: string | undefined
  code: string | undefined
  iss: string | undefined
  error: string | undefined
  users: string[] | undefined
  origin: Origin
}

/**
 * Completes a sign-in, once, in a browser of the user who began it, and reads the server's tools. Returns the server's
 * name. Throws `invalid`, `unauthenticated`, `forbidden`, `not_found` and `bad_gateway`.
 */
export async function finishGrant(deps: Deps, { state, code, iss, error, users, origin }: Callback): Promise<string> {
  const grant = await takePending(deps, state, users)
  const { organizationId, serverId, pendingUserId: userId } = grant
  if (userId === null || grant.pending === null) throw unknownState()
  const [row, member] = await Promise.all([
    deps.db.mcpServer.findUnique({ where: { organizationId_id: { organizationId, id: serverId } } }),
    deps.db.member.findUnique({ where: { userId_organizationId: { userId, organizationId } } }),
  ])
  if (row === null) throw notFound('MCP server')
  if (member === null || (grant.userId === null && member.role === 'member')) throw onlyAdministrators()
  if (code === undefined)
    throw invalid(`The sign-in was refused there (${(error ?? 'no code').slice(0, 100)}); begin again`)
  const begun = unseal<Begun>(deps, MCP_PENDING, grant, grant.pending)
  if (begun.url !== row.url) throw conflictOfChange()
  const granted = await inWords(withFetch(deps, (fetchFn) => finishSignIn(fetchFn, begun, { code, iss })))
  const actor = { organizationId, userId, role: member.role, apiKeyId: null, origin }
  await deps.db.$transaction(async (tx) => {
    const { count } = await tx.mcpGrant.updateMany({
      where: { ...keyIn(grant), revision: grant.revision, server: { revision: row.revision } },
      data: {
        ...tokenColumns(deps, grant, granted),
        connectedAt: new Date(),
        wantedScope: null,
        revision: { increment: 1 },
      },
    })
    if (count === 0) throw conflictOfChange()
    await audit(tx, actor, {
      action: 'mcp_server.connect',
      target: row.id,
      details: { as: grant.userId === null ? 'organization' : 'user' },
    })
  })
  await expireTools(deps, row)
  void refreshTools(deps, row)
  return row.name
}

/** Ends a sign-in here: the tokens are deleted. Throws `not_found`, `forbidden`, and `conflict` without sign-in. */
export async function endGrant(deps: Deps, actor: Actor, id: McpServerId): Promise<void> {
  const { key } = await requireHolder(deps, actor, id)
  await audited(deps, actor, { action: 'mcp_server.disconnect', target: id }, async (tx) => {
    const { count } = await tx.mcpGrant.updateMany({
      where: { ...key, tokens: { not: null } },
      data: { ...ENDED, pending: null, state: null, revision: { increment: 1 } },
    })
    if (count === 0) throw notFound('Grant')
  })
}

/** Takes a sign-in that has begun, so that its callback works once. */
async function takePending({ db }: Deps, state: string | undefined, users: string[] | undefined): Promise<McpGrant> {
  const isUuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(state ?? '')
  const grant = isUuid && state !== undefined ? await db.mcpGrant.findUnique({ where: { state } }) : null
  if (grant === null || (grant.pendingUntil?.getTime() ?? 0) < Date.now()) throw unknownState()
  // Otherwise somebody could have another person sign in for them.
  if (users !== undefined && !users.includes(grant.pendingUserId ?? '')) {
    throw unauthenticated('Sign in to this service in this browser first, as the user who began, and begin again')
  }
  const where = { ...keyIn(grant), state: grant.state }
  const { count } = await db.mcpGrant.updateMany({ where, data: { state: null, pending: null } })
  if (count === 0) throw unknownState()
  return grant
}

const unknownState = () =>
  unauthenticated('This sign-in was not begun here, was completed, or took too long; begin again')
const onlyAdministrators = () => forbidden('Only administrators sign in at an MCP server as the organization')
const conflictOfChange = () => conflict('The MCP server was changed during the sign-in; begin again')

const keyIn = ({ organizationId, serverId, holderId }: GrantKey): GrantKey => ({ organizationId, serverId, holderId })

/** Returns the server and the key of the grant that a caller may change. */
async function requireHolder(deps: Deps, { organizationId, userId, role }: Actor, id: string) {
  const row = await deps.db.mcpServer.findUnique({ where: { organizationId_id: { organizationId, id } } })
  if (row === null) throw notFound('MCP server')
  const oauth = oauthOf(row)
  if (oauth === undefined) throw conflict('The service does not sign in at this MCP server; set its oauth first')
  if (oauth.as === 'organization' && role === 'member') throw onlyAdministrators()
  const isOwn = oauth.as === 'user'
  return { row, oauth, key: keyOf(row, isOwn ? userId : organizationId), userId: isOwn ? userId : null }
}

function clientOf(deps: Deps, row: ServerRow, { client_id }: Oauth) {
  if (client_id === null) return undefined
  const { clientSecret } = readCredentials(deps, row)
  return { client_id, ...(clientSecret !== '' && { client_secret: clientSecret }) }
}

async function inWords<T>(running: Promise<T>): Promise<T> {
  try {
    return await running
  } catch (error) {
    throw error instanceof SignInFailure ? badGateway(error.message) : error
  }
}
