import { createHash, createHmac, randomBytes } from 'node:crypto'
import type { ApiKey, CreateApiKeyRequest } from '../../contract/auth.ts'
import type { ApiKey as ApiKeyRow } from '../../prisma/generated/client.ts'
import type { Deps, Scope } from '../deps.ts'
import { invalid, notFound } from '../errors.ts'
import type { Run } from '../idempotency.ts'
import { newUuid } from '../ids.ts'
import { checkScopes } from './scopes.ts'

/** Of one user in one organization. */
const MAX_API_KEYS = 100
const SHOWN_CHARACTERS = 'ask_'.length + 8

export const API_KEY = /^ask_[0-9a-f]{64}$/

/** What is known by: the key itself is nowhere. */
export const hashApiKey = (key: string): Uint8Array<ArrayBuffer> =>
  new Uint8Array(createHash('sha256').update(key).digest())

/** The caller's in the organization, newest first. */
export async function listApiKeys(deps: Deps, { userId, organizationId }: Scope): Promise<ApiKey[]> {
  const rows = await deps.db.apiKey.findMany({
    where: { userId, organizationId },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
    take: MAX_API_KEYS,
  })
  return rows.map(presentApiKey)
}

/** A key that has been made, and what it is made of again when its request is repeated: see keyOf. */
export type MadeApiKey = { apiKey: ApiKey; seed: string }

/** Throws `invalid`, also for one key too many. */
export async function createApiKey(
  deps: Deps,
  { userId, organizationId }: Scope,
  { name, scopes, expires_in_days }: CreateApiKeyRequest,
  run: Run,
): Promise<MadeApiKey> {
  checkScopes(scopes ?? [])
  const seed = run.uuid ?? randomBytes(32).toString('hex')
  const key = keyOf(deps, seed)
  const row = await deps.db.$transaction(async (tx) => {
    // One after the other, so that the limit holds and a request that runs twice finds its key.
    await tx.$queryRaw`SELECT 1 FROM members
      WHERE user_id = ${userId}::uuid AND organization_id = ${organizationId}::uuid FOR NO KEY UPDATE`
    const made = run.uuid && (await tx.apiKey.findFirst({ where: { requestId: run.uuid, userId, organizationId } }))
    if (made) return made
    if ((await tx.apiKey.count({ where: { userId, organizationId } })) >= MAX_API_KEYS) {
      throw invalid(`You have ${MAX_API_KEYS} API keys in this organization; revoke one of them first`)
    }
    const data = { userId, organizationId, requestId: run.uuid ?? null, name, scopes: scopes ?? [] }
    const expiresAt = expires_in_days ? new Date(Date.now() + expires_in_days * 24 * 60 * 60 * 1000) : null
    const prefix = key.slice(0, SHOWN_CHARACTERS)
    return tx.apiKey.create({ data: { id: newUuid(), ...data, prefix, hash: hashApiKey(key), expiresAt } })
  })
  return { apiKey: presentApiKey(row), seed }
}

/** The seed is random, and of a request that may be repeated it is kept as long as that: the key itself never is. */
export const keyOf = ({ auth }: Deps, seed: string): string =>
  `ask_${createHmac('sha256', auth.apiKeySecret).update(seed).digest('hex')}`

/** Throws `not_found`. */
export async function revokeApiKey(deps: Deps, { userId, organizationId }: Scope, id: string): Promise<void> {
  const { count } = await deps.db.apiKey.deleteMany({ where: { id, userId, organizationId } })
  if (count === 0) throw notFound('API key')
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
