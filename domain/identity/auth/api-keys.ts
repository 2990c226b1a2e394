import { randomBytes } from 'node:crypto'
import type { ApiKey, CreateApiKeyRequest, CreatedApiKey } from '../../../contract/auth.ts'
import type { ApiKeyId } from '../../../contract/kit/ids.ts'
import type { ApiKey as ApiKeyRow, Prisma } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { audit, audited } from '../../kit/audit/entry.ts'
import { createOnce } from '../../kit/create-once.ts'
import { conflict, notFound, quotaExceeded } from '../../kit/errors.ts'
import type { CreationAttempt } from '../../kit/idempotency-keys.ts'
import { newUuid } from '../../kit/ids.ts'
import type { All } from '../../kit/lists.ts'
import type { Deps } from '../deps.ts'
import { deriveToken, hashToken } from './derived-token.ts'
import { requireOpenLogin } from './log-in.ts'

/** Maximum number of a user's keys in one organization. */
const MAX_API_KEYS = 100
const SHOWN_CHARACTERS = 'ask_'.length + 8

export const API_KEY = /^ask_[0-9a-f]{64}$/

/** Returns the caller's keys in the organization, newest first. */
export async function listApiKeys(deps: Deps, { userId, organizationId }: Actor): Promise<All<ApiKey>> {
  const rows = await deps.db.apiKey.findMany({
    where: { userId, organizationId },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
    take: MAX_API_KEYS,
  })
  return rows.map(presentApiKey)
}

/** A created key, with the seed from which a repeated request derives it again. */
export type MadeApiKey = { apiKey: ApiKey; seed: string }

/**
 * Creates a key. `loginId` is the login that asks for it, undefined in mode none. Throws `conflict` for a key
 * beyond MAX_API_KEYS, `not_found` when the membership has ended, and `unauthenticated` when that login has: the key
 * would outlive it.
 */
export async function createApiKey(
  deps: Deps,
  actor: Actor,
  { name, scopes, expires_in_days }: CreateApiKeyRequest,
  { loginId, ...attempt }: CreationAttempt & { loginId: string | undefined },
): Promise<MadeApiKey> {
  const { userId, organizationId } = actor
  const seed = attempt.uuid ?? randomBytes(32).toString('hex')
  const key = keyOf(deps, seed)
  const row = await createOnce(attempt, {
    find: (requestId) => deps.db.apiKey.findFirst({ where: { requestId, userId, organizationId } }),
    insert: () =>
      insertApiKey(deps, actor, loginId, {
        requestId: attempt.uuid ?? null,
        name,
        scopes: scopes ?? [],
        prefix: key.slice(0, SHOWN_CHARACTERS),
        hash: hashToken(key),
        expiresAt: expires_in_days ? new Date(Date.now() + expires_in_days * 24 * 60 * 60 * 1000) : null,
      }),
  })
  return { apiKey: presentApiKey(row), seed }
}

type NewApiKey = Omit<Prisma.ApiKeyCreateManyInput, 'id' | 'userId' | 'organizationId'>

/** Inserts a key; undefined when another run of the request has already created it. Throws as createApiKey does. */
const insertApiKey = (
  deps: Deps,
  actor: Actor,
  loginId: string | undefined,
  data: NewApiKey,
): Promise<ApiKeyRow | undefined> =>
  deps.db.$transaction(async (tx) => {
    const { userId, organizationId } = actor
    // A user's keys are created one after the other, so that the limit holds.
    const members = await tx.$queryRaw<unknown[]>`SELECT 1 FROM members
      WHERE user_id = ${userId}::uuid AND organization_id = ${organizationId}::uuid FOR NO KEY UPDATE`
    if (members.length === 0) throw notFound('Organization')
    await requireOpenLogin(tx, userId, loginId)
    if ((await tx.apiKey.count({ where: { userId, organizationId } })) >= MAX_API_KEYS) {
      throw quotaExceeded(
        `You have ${MAX_API_KEYS} API keys in this organization, which is the limit; revoke one first`,
      )
    }
    const [row] = await tx.apiKey.createManyAndReturn({
      data: [{ ...data, id: newUuid(), userId, organizationId }],
      skipDuplicates: true,
    })
    if (row !== undefined) {
      await audit(tx, actor, { action: 'api_key.create', target: row.id, details: { scopes: row.scopes } })
    }
    return row
  })

const keyOf = (deps: Deps, seed: string): string => deriveToken(deps, 'ask', seed)

/** Presents a key to the request that created it. Throws `conflict` when the secret has changed since. */
export function presentCreatedKey(deps: Deps, { apiKey, seed }: MadeApiKey): CreatedApiKey {
  const key = keyOf(deps, seed)
  if (key.startsWith(apiKey.key_prefix)) return { ...apiKey, key }
  throw conflict('This request made a key that cannot be shown again; revoke it and make another')
}

/** Deletes the seeds of requests too old to be repeated. */
export async function forgetSeeds(deps: Deps, olderThanMs: number): Promise<void> {
  await deps.db.$executeRaw`
    UPDATE api_keys SET request_id = NULL
    WHERE request_id IS NOT NULL AND created_at < now() - make_interval(secs => ${olderThanMs / 1000})`
}

/** Revokes one of the caller's keys. Throws `not_found`. */
export async function revokeApiKey(deps: Deps, actor: Actor, id: ApiKeyId): Promise<void> {
  const { userId, organizationId } = actor
  await audited(deps, actor, { action: 'api_key.revoke', target: id }, async (tx) => {
    const { count } = await tx.apiKey.deleteMany({ where: { id, userId, organizationId } })
    if (count === 0) throw notFound('API key')
  })
}

const presentApiKey = (row: ApiKeyRow): ApiKey => ({
  id: row.id,
  name: row.name,
  key_prefix: row.prefix,
  scopes: row.scopes,
  expires_at: row.expiresAt?.toISOString() ?? null,
  last_used_at: row.lastUsedAt?.toISOString() ?? null,
  created_at: row.createdAt.toISOString(),
})
