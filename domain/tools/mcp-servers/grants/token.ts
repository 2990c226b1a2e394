import { sleep } from '../../../../lib/sleep.ts'
import type { McpGrant, McpServer as ServerRow } from '../../../../prisma/generated/client.ts'
import type { Deps } from '../../deps.ts'
import { type Granted, refreshTokens, SignInFailure } from '../../mcp/sign-in/flow.ts'
import { ENDED, type GrantKey, keyOf, MCP_TOKENS, tokenColumns, unseal, withFetch } from './grant.ts'

/** Time before its end at which a token is refreshed. */
const EARLY_MS = 30_000
/** Time for which one process has the right to spend a refresh token, and for which others wait. */
const LEASE_MS = 30_000
const PAUSE_MS = 200

/** Access token of a holder. `revision` tells whether it has been replaced since. */
export type HeldToken = { accessToken: string; revision: number }

/** Returns the holder's token, refreshed if it ends soon. Undefined without one. Throws `SignInFailure`. */
export async function readToken(
  deps: Deps,
  row: ServerRow,
  holderId: string,
  signal: AbortSignal,
): Promise<HeldToken | undefined> {
  const grant = await find(deps, keyOf(row, holderId))
  if (grant?.expiresAt != null && grant.expiresAt.getTime() < Date.now() + EARLY_MS) {
    return refresh(deps, row, grant, signal)
  }
  return held(deps, row, grant)
}

/**
 * Returns a token to use instead of a refused one. Undefined if there is none. Throws `SignInFailure`, also when another
 * process refreshes it for longer than `waitMs`.
 */
export async function replaceToken(
  deps: Deps,
  row: ServerRow,
  holderId: string,
  refused: HeldToken,
  signal: AbortSignal,
  waitMs = LEASE_MS,
): Promise<HeldToken | undefined> {
  const grant = await find(deps, keyOf(row, holderId))
  return grant?.revision === refused.revision ? refresh(deps, row, grant, signal, waitMs) : held(deps, row, grant)
}

/** Deletes tokens that a server refuses, unless they have been replaced. */
export async function dropToken(
  { db }: Deps,
  row: ServerRow,
  holderId: string,
  { revision }: HeldToken,
): Promise<void> {
  const data = { ...ENDED, revision: { increment: 1 } }
  await db.mcpGrant.updateMany({ where: { ...keyOf(row, holderId), revision }, data })
}

/** Notes a scope that a server wants, for the next sign-in. */
export async function wantScope({ db }: Deps, row: ServerRow, holderId: string, scope: string | undefined) {
  if (scope === undefined || scope.length > MAX_SCOPE) return
  await db.mcpGrant.updateMany({ where: keyOf(row, holderId), data: { wantedScope: scope } })
}

const MAX_SCOPE = 4096

/** Returns who has signed in at a server last: with that token its tools are listed. */
export async function latestHolder({ db }: Deps, { organizationId, id }: ServerRow): Promise<string | undefined> {
  const where = { organizationId, serverId: id, tokens: { not: null } }
  const orderBy = { connectedAt: 'desc' } as const
  return (await db.mcpGrant.findFirst({ where, orderBy, select: { holderId: true } }))?.holderId
}

const find = ({ db }: Deps, key: GrantKey) =>
  db.mcpGrant.findUnique({ where: { organizationId_serverId_holderId: key } })

/** Returns a grant's token, unless it was made for another address. */
function held(deps: Deps, { url }: ServerRow, grant: McpGrant | null): HeldToken | undefined {
  if (grant?.tokens == null) return undefined
  const granted = unseal<Granted>(deps, MCP_TOKENS, grant, grant.tokens)
  if (granted.url !== url) return undefined
  return { accessToken: granted.tokens.access_token, revision: grant.revision }
}

/**
 * Spends the refresh token of a grant, in one process at a time: a server may take a second use for theft, and end the
 * grant. Others wait for the new tokens.
 */
async function refresh(
  deps: Deps,
  row: ServerRow,
  before: McpGrant,
  signal: AbortSignal,
  waitMs = LEASE_MS,
): Promise<HeldToken | undefined> {
  const key = keyOf(row, before.holderId)
  for (const until = performance.now() + waitMs; performance.now() < until; ) {
    signal.throwIfAborted()
    if (await take(deps, key, before.revision)) return spend(deps, row, before)
    const now = await find(deps, key)
    if (now === null || now.revision !== before.revision || now.tokens === null) return held(deps, row, now)
    await sleep(PAUSE_MS, signal)
  }
  // Not the former token: a server that refuses it again would end the grant.
  throw new SignInFailure('The authorization server did not answer in time.')
}

/** Takes the right to spend a refresh token, by the database's clock: processes disagree about the time. */
async function take({ db }: Deps, { organizationId, serverId, holderId }: GrantKey, revision: number) {
  const count = await db.$executeRaw`
    UPDATE mcp_grants SET refreshing_until = now() + make_interval(secs => ${LEASE_MS / 1000})
    WHERE organization_id = ${organizationId}::uuid AND server_id = ${serverId}::uuid AND holder_id = ${holderId}::uuid
      AND revision = ${revision} AND tokens IS NOT NULL AND (refreshing_until IS NULL OR refreshing_until < now())`
  return count === 1
}

/** Not ended by a signal: the answer of the server must not be lost. */
async function spend(deps: Deps, row: ServerRow, grant: McpGrant): Promise<HeldToken | undefined> {
  const { revision, tokens } = grant
  const key = keyOf(row, grant.holderId)
  const where = { ...key, revision }
  if (tokens === null) return undefined
  try {
    const granted = unseal<Granted>(deps, MCP_TOKENS, grant, tokens)
    const refreshed =
      granted.url === row.url ? await withFetch(deps, (fetchFn) => refreshTokens(fetchFn, granted)) : undefined
    const columns = refreshed === undefined ? ENDED : tokenColumns(deps, grant, refreshed)
    const { count } = await deps.db.mcpGrant.updateMany({ where, data: { ...columns, revision: { increment: 1 } } })
    // Somebody has signed in meanwhile, or ended the grant.
    if (count === 0) return held(deps, row, await find(deps, key))
    if (refreshed === undefined) return undefined
    return { accessToken: refreshed.tokens.access_token, revision: revision + 1 }
  } catch (error) {
    await deps.db.mcpGrant.updateMany({ where, data: { refreshingUntil: null } })
    throw error
  }
}
