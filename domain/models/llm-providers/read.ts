import type { ProviderId } from '../../../contract/kit/ids.ts'
import type { LlmProvider } from '../../../contract/llm-providers.ts'
import type { Prisma, LlmProvider as ProviderRow } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { notFound } from '../../kit/errors.ts'
import type { Deps } from '../deps.ts'
import { mergeProvider, type Provider } from '../llm/catalogue.ts'
import type { PredefinedProvider } from '../llm/predefined.ts'
import { presentProvider } from './present.ts'

/** A provider of an organization, with its row if it has one, and its predefined original if there is one. */
export type FoundProvider = {
  provider: Provider
  row: ProviderRow | undefined
  predefined: PredefinedProvider | undefined
}

/** Returns a provider. Throws `not_found`. */
export async function getProvider(deps: Deps, actor: Actor, id: ProviderId): Promise<LlmProvider> {
  const { provider, row } = await requireProvider(deps, actor, id)
  return presentProvider(provider, row)
}

/** Returns a provider of the organization with its row. Throws `not_found`. */
export async function requireProvider(deps: Deps, actor: Actor, id: string): Promise<FoundProvider> {
  const found = await findProvider(deps, actor, id)
  if (found === undefined) throw notFound('Provider')
  return found
}

export async function findProvider(
  deps: Deps,
  { organizationId }: Actor,
  id: string,
): Promise<FoundProvider | undefined> {
  const row = await deps.db.llmProvider.findUnique({ where: { organizationId_id: { organizationId, id } } })
  const predefined = deps.models.predefined.find((known) => known.id === id)
  const provider = mergeProvider(
    predefined,
    row === null ? undefined : { ...row, keySecret: await readKeySecret(deps, row) },
  )
  return provider && { provider, row: row ?? undefined, predefined }
}

/** Reads the secret that a provider's key names. */
const readKeySecret = async ({ db }: Deps, { organizationId, keySecretName: name }: ProviderRow) =>
  name === null ? null : db.organizationSecret.findUnique({ where: { organizationId_name: { organizationId, name } } })

/**
 * Locks a provider's row against other changes of the provider's models. A predefined provider gets its row here, when
 * the organization first stores a change. Throws `not_found`.
 */
export async function lockProvider(
  tx: Prisma.TransactionClient,
  { organizationId }: Actor,
  { provider: { id, isPredefined } }: FoundProvider,
): Promise<void> {
  if (isPredefined) await tx.llmProvider.createMany({ data: [{ organizationId, id }], skipDuplicates: true })
  const rows = await tx.$queryRaw<unknown[]>`
    SELECT 1 FROM llm_providers WHERE organization_id = ${organizationId}::uuid AND id = ${id}::uuid FOR NO KEY UPDATE`
  if (rows.length === 0) throw notFound('Provider')
}
