import { isDeepStrictEqual } from 'node:util'
import type { McpServerId } from '../../../contract/kit/ids.ts'
import type { McpServer, UpdateMcpServerRequest } from '../../../contract/mcp-servers.ts'
import { Prisma, type McpServer as ServerRow } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { audit, givenFields } from '../../kit/audit/entry.ts'
import { checkCalledUrl } from '../../kit/called-url.ts'
import { conflict, invalid, notFound, quotaExceeded } from '../../kit/errors.ts'
import { lockOrganization } from '../../kit/lock-organization.ts'
import { MASK } from '../../kit/secrets.ts'
import { keepsValues, maskHeaders } from '../../kit/sent-headers.ts'
import type { Deps } from '../deps.ts'
import { checkCredentials, checkSecrets, mergeServerHeaders } from './check.ts'
import { type Credentials, credentialColumns, damagedCredentials, isDamaged, readCredentials } from './credentials.ts'
import { refreshTools } from './discover.ts'
import { lockServer, requireFreeSlug } from './lock.ts'
import { checkOauth, clientSecretOf, oauthColumn, oauthOf } from './oauth.ts'
import { getServer } from './read.ts'
import { slugOf } from './tool-names.ts'
import { fingerprintsOf, toolsOf } from './tools.ts'

type Changes = Prisma.McpServerUncheckedUpdateInput

/**
 * Changes a server, from the next call on. Reads its tools again if its address or credentials have changed. Throws
 * `not_found`, `invalid` as for a new server and for a new address without its credentials, and `conflict` for a taken
 * name, tools that have changed again and damaged credentials.
 */
export async function patchServer(
  deps: Deps,
  actor: Actor,
  id: McpServerId,
  input: UpdateMcpServerRequest,
): Promise<McpServer> {
  const { organizationId } = actor
  const url = input.url == null ? undefined : await checkCalledUrl(deps, input.url, 'url')
  const changed = await deps.db.$transaction(async (tx) => {
    if (input.name != null) await lockOrganization(tx, organizationId)
    const row = await lockServer(tx, { organizationId, id })
    if (row === null) throw notFound('MCP server')
    await checkSecrets(tx, organizationId, input, url ?? row.url)
    const connection = connectionChanges(deps, row, input, url)
    const data: Changes = {
      ...(await nameChanges(tx, row, input.name)),
      ...(input.accept_tools_changed_at != null && acceptTools(row, input.accept_tools_changed_at)),
      ...connection,
      description: input.description ?? undefined,
      status: input.status ?? undefined,
      toolsPolicy: input.tools_policy ?? undefined,
      updatedAt: new Date(),
    }
    if (endsGrants(row, data)) await tx.mcpGrant.deleteMany({ where: { organizationId, serverId: id } })
    const updated = await tx.mcpServer.update({ where: { organizationId_id: { organizationId, id } }, data })
    await audit(tx, actor, { action: 'mcp_server.update', target: id, details: givenFields(input) })
    return connection === undefined ? undefined : updated
  })
  if (changed?.status === 'active') void refreshTools(deps, changed)
  return getServer(deps, actor, id)
}

/** Maximum number of a server's former names. Each tool has one more name for each. */
const MAX_FORMER_SLUGS = 100

/**
 * Returns the changes for a new name, which also renames the tools. Keeps the former names, because approvals may use
 * them. Throws `conflict` for a taken name and beyond the limit.
 */
async function nameChanges(tx: Prisma.TransactionClient, row: ServerRow, name: string | null | undefined) {
  if (name == null) return {}
  const slug = slugOf(name)
  await requireFreeSlug(tx, { ...row, name, slug })
  const formerSlugs = [...new Set([...row.formerSlugs, row.slug])].filter((former) => former !== slug)
  if (formerSlugs.length > MAX_FORMER_SLUGS) {
    throw quotaExceeded(`The MCP server has had ${MAX_FORMER_SLUGS} other names, which is the limit; add it anew`)
  }
  return { name, slug, formerSlugs }
}

/** Accepts the current tools. Throws `conflict` if they have changed since the caller saw them. */
function acceptTools(row: ServerRow, seen: string): Changes {
  if (row.toolsChangedAt?.getTime() !== Date.parse(seen)) {
    throw conflict('The tools have changed again, or were accepted already; look at them and at tools_changed_at')
  }
  return { acceptedTools: [...fingerprintsOf(toolsOf(row)?.tools ?? [])], toolsChangedAt: null }
}

/** Columns to reset when the address changes. */
const FORGOTTEN = {
  tools: Prisma.DbNull,
  toolsBytes: 0,
  acceptedTools: Prisma.DbNull,
  protocol: Prisma.DbNull,
  toolsDiscoveredAt: null,
  toolsChangedAt: null,
  toolsError: null,
}

/** Returns the changes of address and credentials. Undefined if neither changes. */
function connectionChanges(
  deps: Deps,
  row: ServerRow,
  input: UpdateMcpServerRequest,
  url: string | undefined,
): Changes | undefined {
  const isMoved = url !== undefined && url !== row.url
  const credentials = newCredentials(deps, row, input)
  const oauth = input.oauth == null ? undefined : oauthColumn(input.oauth)
  checkOauth(oauth === undefined ? oauthOf(row) : oauth, credentials ?? shownCredentials(row))
  const isOther = oauth !== undefined && !isDeepStrictEqual(oauth, row.oauth)
  if (!isMoved && credentials === undefined && !isOther) return undefined
  if (isMoved) refuseOtherServer(row, input, url)
  return {
    ...(isMoved && { url, ...FORGOTTEN }),
    ...(isOther && { oauth: oauth ?? Prisma.DbNull }),
    ...(credentials !== undefined && credentialColumns(deps, row, credentials)),
    revision: row.revision + 1,
    toolsExpireAt: null,
  }
}

/** Grants are for an address and a client. */
const endsGrants = (row: ServerRow, { url, oauth }: Changes): boolean =>
  row.oauth !== null && (url !== undefined || oauth !== undefined)

/** Stands for credentials that are not read: whether there is a key, and the names of headers. */
const shownCredentials = ({ hasApiKey, headerNames }: ServerRow): Credentials => ({
  apiKey: hasApiKey ? MASK : '',
  headers: maskHeaders(headerNames),
  clientSecret: '',
})

const keepsKey = ({ api_key }: UpdateMcpServerRequest): boolean => api_key == null || api_key === MASK

/** Reports whether any stored header is kept. */
const keepsHeaders = ({ headers }: UpdateMcpServerRequest): boolean => headers == null || keepsValues(headers)

/** Returns the credentials after a change. Undefined if they do not change. */
function newCredentials(deps: Deps, row: ServerRow, input: UpdateMcpServerRequest): Credentials | undefined {
  if (keepsKey(input) && input.headers == null && input.oauth == null) return undefined
  const hasKept = (row.hasApiKey && keepsKey(input)) || (row.headerNames.length > 0 && keepsHeaders(input))
  const isKept = hasKept || row.oauth !== null
  const stored = isKept ? readStored(deps, row) : { apiKey: '', headers: {}, clientSecret: '' }
  const credentials = {
    apiKey: keepsKey(input) ? stored.apiKey : (input.api_key ?? ''),
    headers: input.headers == null ? stored.headers : mergeServerHeaders(input.headers, stored.headers),
    clientSecret: input.oauth == null ? stored.clientSecret : clientSecretOf(input.oauth, stored.clientSecret),
  }
  checkCredentials(credentials)
  return isKept && JSON.stringify(credentials) === JSON.stringify(stored) ? undefined : credentials
}

function readStored(deps: Deps, row: ServerRow): Credentials {
  try {
    return readCredentials(deps, row)
  } catch (error) {
    if (isDamaged(error)) throw conflict(damagedCredentials(row.name))
    throw error
  }
}

/** Throws `invalid` for a change that would send stored credentials to another server, which would see them. */
function refuseOtherServer(row: ServerRow, input: UpdateMcpServerRequest, url: string): void {
  if (new URL(url).origin === new URL(row.url).origin) return
  const sentence = 'with another server, because the stored one is for the previous server'
  if (row.hasApiKey && keepsKey(input)) throw invalid(`api_key: is required ${sentence}; "" removes it`)
  if (row.headerNames.length > 0 && keepsHeaders(input)) throw invalid(`headers: is required ${sentence}`)
  const keepsSecret = input.oauth == null || input.oauth.client_secret === MASK
  if (oauthOf(row)?.has_client_secret && keepsSecret) throw invalid(`oauth: is required ${sentence}`)
}
