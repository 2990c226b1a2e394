import type { CreateMcpServerRequest, McpServer } from '../../../contract/mcp-servers.ts'
import { Prisma, type McpServer as ServerRow } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { audit } from '../../kit/audit/entry.ts'
import { checkCalledUrl } from '../../kit/called-url.ts'
import { createOnce } from '../../kit/create-once.ts'
import { invalid, quotaExceeded } from '../../kit/errors.ts'
import type { CreationAttempt } from '../../kit/idempotency-keys.ts'
import { asUuid } from '../../kit/ids.ts'
import { lockOrganization } from '../../kit/lock-organization.ts'
import { MASK } from '../../kit/secrets.ts'
import type { Deps } from '../deps.ts'
import { checkCredentials, checkSecrets, mergeServerHeaders } from './check.ts'
import { credentialColumns } from './credentials.ts'
import { refreshTools } from './discover.ts'
import { requireFreeSlug } from './lock.ts'
import { checkOauth, clientSecretOf, oauthColumn } from './oauth.ts'
import { getServer } from './read.ts'
import { slugOf } from './tool-names.ts'

/**
 * Adds a server and begins to read its tools. Throws `invalid` for a forbidden address and invalid headers, and
 * `conflict` for a taken name and beyond the quota.
 */
export async function createServer(
  deps: Deps,
  actor: Actor,
  input: CreateMcpServerRequest,
  attempt: CreationAttempt,
): Promise<McpServer> {
  const { organizationId } = actor
  if (input.api_key === MASK) throw invalid(`api_key: must be a key; ${MASK} keeps a stored one, and there is none`)
  const credentials = {
    apiKey: input.api_key ?? '',
    headers: mergeServerHeaders(input.headers ?? {}, {}),
    clientSecret: input.oauth == null ? '' : clientSecretOf(input.oauth, ''),
  }
  const oauth = input.oauth == null ? null : oauthColumn(input.oauth)
  checkCredentials(credentials)
  checkOauth(oauth, credentials)
  const row = await createOnce(attempt, {
    find: (id) => deps.db.mcpServer.findUnique({ where: { organizationId_id: { organizationId, id } } }),
    insert: async (id) => {
      const url = await checkCalledUrl(deps, input.url, 'url')
      await checkSecrets(deps.db, organizationId, input, url)
      const data = {
        id,
        organizationId,
        name: input.name,
        slug: slugOf(input.name),
        description: input.description ?? null,
        url,
        toolsPolicy: input.tools_policy ?? 'accept',
        oauth: oauth ?? Prisma.DbNull,
        ...credentialColumns(deps, { organizationId, id }, credentials),
      }
      return deps.db.$transaction((tx) => insertWithin(deps, tx, actor, data))
    },
  })
  // In the background: the caller does not wait for it.
  if (row.toolsExpireAt === null) void refreshTools(deps, row)
  return getServer(deps, actor, asUuid(row.id))
}

type NewServer = Prisma.McpServerCreateManyInput & Pick<ServerRow, 'id' | 'organizationId' | 'name' | 'slug'>

/** Inserts a server; undefined when another run of the request has created it. Throws `conflict`. */
async function insertWithin(
  { quotas }: Deps,
  tx: Prisma.TransactionClient,
  actor: Actor,
  data: NewServer,
): Promise<ServerRow | undefined> {
  const { organizationId } = data
  await lockOrganization(tx, organizationId)
  if ((await tx.mcpServer.count({ where: { organizationId } })) >= quotas.mcpServers) {
    throw quotaExceeded(`The organization has ${quotas.mcpServers} MCP servers, which is the limit; delete one first`)
  }
  await requireFreeSlug(tx, data)
  const [row] = await tx.mcpServer.createManyAndReturn({ data: [data], skipDuplicates: true })
  if (row !== undefined) await audit(tx, actor, { action: 'mcp_server.create', target: row.id })
  return row
}
