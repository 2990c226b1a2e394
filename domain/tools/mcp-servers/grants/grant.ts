import { createGuardedFetch } from '../../../../lib/outgoing/guarded-fetch.ts'
import type { McpGrant, McpServer as ServerRow } from '../../../../prisma/generated/client.ts'
import { type EncryptedColumn, placeOf } from '../../../kit/secrets.ts'
import type { Deps } from '../../deps.ts'
import type { Granted } from '../../mcp/sign-in/flow.ts'

const keys = ['organization_id', 'server_id', 'holder_id']

/** Columns of tokens, and of sign-ins that have begun. */
export const MCP_TOKENS: EncryptedColumn = { table: 'mcp_grants', keys, column: 'tokens' }
export const MCP_PENDING: EncryptedColumn = { table: 'mcp_grants', keys, column: 'pending' }

/** Primary key of a grant. The holder is a member or the organization. */
export type GrantKey = Pick<McpGrant, 'organizationId' | 'serverId' | 'holderId'>

export const keyOf = (
  { organizationId, id }: Pick<ServerRow, 'organizationId' | 'id'>,
  holderId: string,
): GrantKey => ({
  organizationId,
  serverId: id,
  holderId,
})

const placeIn = (column: EncryptedColumn, { organizationId, serverId, holderId }: GrantKey) =>
  placeOf(column, [organizationId, serverId, holderId])

/** Largest JSON of a sign-in: the server's metadata are a part of it. */
const MAX_BYTES = 256 * 1024

/** Encrypts a value as JSON. Throws for more than a server may make the service store. */
export function seal({ secrets }: Deps, column: EncryptedColumn, key: GrantKey, value: object) {
  const text = JSON.stringify(value)
  if (Buffer.byteLength(text) > MAX_BYTES) throw new Error('The metadata of the authorization server are too large.')
  return secrets.encrypt(text, placeIn(column, key))
}

/** Decrypts JSON of `seal`. Throws `UnreadableSecret`. */
export const unseal = <T>({ secrets }: Deps, column: EncryptedColumn, key: GrantKey, bytes: Uint8Array): T =>
  JSON.parse(secrets.decrypt(bytes, placeIn(column, key)))

/** Returns the columns of new tokens. */
export const tokenColumns = (deps: Deps, key: GrantKey, { expiresAt, ...granted }: Granted) => ({
  tokens: seal(deps, MCP_TOKENS, key, granted),
  scope: granted.tokens.scope ?? null,
  expiresAt: expiresAt ?? null,
  refreshingUntil: null,
})

/** Columns of a grant whose tokens are worth nothing any more. */
export const ENDED = { tokens: null, scope: null, expiresAt: null, connectedAt: null, refreshingUntil: null } as const

const TIMEOUT_MS = 10_000
const MAX_ANSWER_BYTES = 256 * 1024

/** Runs requests of a sign-in, which follow no redirects and reach allowed addresses only. */
export async function withFetch<T>(deps: Deps, work: (fetchFn: typeof fetch) => Promise<T>): Promise<T> {
  const limits = { headersTimeoutMs: TIMEOUT_MS, idleTimeoutMs: TIMEOUT_MS, maxBytes: MAX_ANSWER_BYTES }
  const guarded = createGuardedFetch({ ...deps.outgoing, ...limits })
  try {
    return await work(guarded.fetch)
  } finally {
    await guarded.close()
  }
}
