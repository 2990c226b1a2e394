import type { ProviderId } from '../../../contract/kit/ids.ts'
import type { LlmProviderType, ModelSync } from '../../../contract/llm-providers.ts'
import { createFairQueue } from '../../../lib/fair-queue.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { audit } from '../../kit/audit/entry.ts'
import { badGateway, conflict, quotaExceeded, tooMany } from '../../kit/errors.ts'
import { newUuid } from '../../kit/ids.ts'
import { SecretRefused } from '../../kit/organization-secrets/resolve.ts'
import { UnreadableSecret } from '../../kit/secrets.ts'
import type { Deps } from '../deps.ts'
import { ModelError } from '../llm/model.ts'
import { listModels } from '../llm/providers/list-models.ts'
import type { ListedModel } from '../llm/providers/model-lists.ts'
import { type FoundProvider, lockProvider, requireProvider } from './read.ts'
import { damagedKey, keyOf } from './stored-key.ts'

/** Maximum number of concurrent syncs in a process. Each holds a list of some MiB. */
const AT_ONCE = 8
const WAIT_MS = 30_000
const slots = createFairQueue(AT_ONCE, WAIT_MS, { maxWaiting: 50 })
/** Owners with a sync in this process. Each has one at a time, so that a slow owner does not block others. */
const syncing = new Set<string>()

/**
 * Updates a provider's discovered models from the provider's own list. Throws `not_found`, `bad_gateway` with the
 * provider's reason, `conflict` beyond the quota and for a provider that changes meanwhile, and `too_many` while the
 * organization's owner syncs another provider, or too many owners sync.
 */
export async function syncModels(deps: Deps, actor: Actor, id: ProviderId): Promise<ModelSync> {
  const { organizationId } = actor
  const found = await requireProvider(deps, actor, id)
  const owner = await deps.owners.ownerOf(organizationId)
  if (syncing.has(owner)) throw tooMany('Another provider of this owner is being synced; try again soon', 5)
  syncing.add(owner)
  try {
    const sync = async (): Promise<ModelSync> => {
      const listed = await readList(deps, actor, found)
      return listed === 'not_supported' ? { status: listed } : await record(deps, actor, found, listed)
    }
    // Without a signal: a sync is completed even if its client disconnects.
    return await slots.run({ owner }, sync, refuse)
  } finally {
    syncing.delete(owner)
  }
}

const refuse = (): never => {
  throw tooMany('Many providers are being synced; try again soon', 10)
}

async function readList(deps: Deps, { organizationId }: Actor, found: FoundProvider) {
  const { provider } = found
  try {
    return await listModels({
      type: provider.type,
      baseUrl: provider.baseUrl,
      apiKey: keyOf(deps, organizationId, provider),
      providerName: provider.name,
      // Configured models do not count against the quota.
      maxModels: deps.quotas.llmModels + ownNames(found).length,
      fetch: deps.models.fetchOf(provider),
    })
  } catch (error) {
    if (error instanceof UnreadableSecret && error.isDamaged) throw conflict(damagedKey(provider))
    if (error instanceof SecretRefused) throw conflict(error.message)
    if (!(error instanceof ModelError)) throw error
    throw badGateway(error.message, isAboutKey(error, provider.type) ? 'api_key' : undefined)
  }
}

/** Reports whether a provider has refused its key. Gemini answers 400, though a list has nothing else to refuse. */
const isAboutKey = ({ status = 0 }: ModelError, type: LlmProviderType): boolean =>
  [401, 403, ...(type === 'gemini' ? [400] : [])].includes(status)

const record = (
  deps: Deps,
  actor: Actor,
  found: FoundProvider,
  listed: ListedModel[],
): Promise<Extract<ModelSync, { status: 'success' }>> =>
  deps.db.$transaction(async (tx) => {
    await lockProvider(tx, actor, found)
    await requireUnchanged(tx, actor, found)
    const own = ownNames(found)
    const discovered = listed.filter(({ name }) => !own.includes(name))
    const { created, updated } = await insertListed(tx, actor, found.provider.id, discovered)
    const stale = await markStale(tx, actor, found.provider.id, discovered)
    await keepWithinQuota(deps, tx, actor, found.provider.id)
    const where = { organizationId_id: { organizationId: actor.organizationId, id: found.provider.id } }
    await tx.llmProvider.update({ where, data: { lastSyncedAt: new Date() } })
    await audit(tx, actor, { action: 'llm_provider.sync', target: found.provider.id })
    return { status: 'success', created, updated, stale }
  })

/** Names of a predefined provider's configured models. */
const ownNames = ({ predefined }: FoundProvider): string[] => predefined?.models.map(({ name }) => name) ?? []

/** Inserts new models. Of existing ones only `is_stale` changes: the other columns may have been edited. */
async function insertListed(
  tx: Prisma.TransactionClient,
  { organizationId }: Actor,
  providerId: string,
  listed: ListedModel[],
): Promise<{ created: number; updated: number }> {
  const ids = listed.map(() => newUuid())
  const names = listed.map(({ name }) => name)
  const displayNames = listed.map(({ displayName }) => displayName)
  const [counts] = await tx.$queryRaw<{ created: number; updated: number }[]>`
    WITH written AS (
      INSERT INTO llm_models (id, organization_id, provider_id, name, display_name, source, updated_at)
      SELECT listed.id, ${organizationId}::uuid, ${providerId}::uuid, listed.name, listed.display_name, 'discovered', now()
      FROM unnest(${ids}::uuid[], ${names}::text[], ${displayNames}::text[]) AS listed (id, name, display_name)
      ON CONFLICT (organization_id, provider_id, name)
        DO UPDATE SET is_stale = false, updated_at = CASE WHEN llm_models.is_stale THEN now() ELSE llm_models.updated_at END
      RETURNING xmax = 0 AS is_new
    )
    SELECT (count(*) FILTER (WHERE is_new))::int AS created, (count(*) FILTER (WHERE NOT is_new))::int AS updated FROM written`
  return counts ?? { created: 0, updated: 0 }
}

async function markStale(
  tx: Prisma.TransactionClient,
  { organizationId }: Actor,
  providerId: string,
  listed: ListedModel[],
): Promise<number> {
  return tx.$executeRaw`
    UPDATE llm_models SET is_stale = true, updated_at = now()
    WHERE organization_id = ${organizationId}::uuid AND provider_id = ${providerId}::uuid
      AND source = 'discovered' AND NOT is_stale AND NOT name = ANY (${listed.map(({ name }) => name)}::text[])`
}

/** Throws `conflict` when the provider's type or address has changed since the listing. The provider is locked. */
async function requireUnchanged(
  tx: Prisma.TransactionClient,
  { organizationId }: Actor,
  { provider, row }: FoundProvider,
): Promise<void> {
  if (provider.isPredefined) return
  const where = { organizationId, id: provider.id, type: row?.type ?? null, baseUrl: row?.baseUrl ?? null }
  if ((await tx.llmProvider.count({ where })) > 0) return
  throw conflict('The provider was changed while its models were listed; sync it again')
}

/**
 * Deletes the models that have been stale longest, down to the quota. Throws `conflict` if the others alone exceed it.
 */
async function keepWithinQuota(
  { quotas }: Deps,
  tx: Prisma.TransactionClient,
  { organizationId }: Actor,
  providerId: string,
): Promise<void> {
  const excess = (await tx.llmModel.count({ where: { organizationId, providerId } })) - quotas.llmModels
  if (excess <= 0) return
  const deleted = await tx.$executeRaw`
    DELETE FROM llm_models WHERE (organization_id, id) IN (
      SELECT organization_id, id FROM llm_models
      WHERE organization_id = ${organizationId}::uuid AND provider_id = ${providerId}::uuid AND is_stale
      ORDER BY updated_at, id LIMIT ${excess}
    )`
  if (deleted === excess) return
  throw quotaExceeded(`A provider has at most ${quotas.llmModels} models; delete some of this one's first`)
}
