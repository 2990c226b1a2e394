import type { ProviderId } from '../../contract/ids.ts'
import type { LlmProvider, UpdateLlmProviderRequest } from '../../contract/llm-providers.ts'
import type { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../actor.ts'
import type { Deps } from '../deps.ts'
import { invalid, notFound } from '../errors.ts'
import { checkBaseUrl, MASK } from './check.ts'
import { getProvider, requireProvider } from './read.ts'
import { encryptKey } from './stored-key.ts'

/**
 * Changes a provider. The next model call uses the change. Throws `not_found`, and `invalid` for an address that may
 * not be called and for what the environment gives a predefined provider.
 */
export async function patchProvider(
  deps: Deps,
  actor: Actor,
  id: ProviderId,
  input: UpdateLlmProviderRequest,
): Promise<LlmProvider> {
  const { organizationId } = actor
  const { predefined } = await requireProvider(deps, actor, id)
  const common = { name: input.name ?? undefined, status: input.status ?? undefined }
  if (predefined !== undefined) {
    refuseOfEnvironment(input)
    const where = { organizationId_id: { organizationId, id } }
    await deps.db.llmProvider.upsert({ where, create: { organizationId, id, ...common }, update: common })
  } else {
    await updateOwn(deps, actor, id, { ...common, ...(await connectionOf(deps, actor, id, input)) })
  }
  return getProvider(deps, actor, id)
}

async function connectionOf(
  deps: Deps,
  { organizationId }: Actor,
  id: string,
  { provider_type, base_url, api_key }: UpdateLlmProviderRequest,
): Promise<Prisma.LlmProviderUpdateManyMutationInput> {
  const isKept = api_key == null || api_key === MASK
  return {
    type: provider_type ?? undefined,
    ...(base_url == null ? {} : { baseUrl: await checkBaseUrl(deps, base_url) }),
    ...(isKept ? {} : { apiKey: encryptKey(deps, organizationId, id, api_key) }),
  }
}

async function updateOwn(
  deps: Deps,
  { organizationId }: Actor,
  id: string,
  data: Prisma.LlmProviderUpdateManyMutationInput,
): Promise<void> {
  const { count } = await deps.db.llmProvider.updateMany({ where: { organizationId, id }, data })
  if (count === 0) throw notFound('Provider')
}

/** Throws `invalid` for fields that come from the environment. Otherwise its key could be sent to another address. */
function refuseOfEnvironment(input: UpdateLlmProviderRequest): void {
  for (const field of ['provider_type', 'base_url', 'api_key'] as const) {
    if (input[field] == null || input[field] === MASK) continue
    throw invalid(`${field}: comes from the environment of the service; add a provider of your own to change it`)
  }
}

/** Deletes a provider with its models. Throws `not_found`, and `invalid` for a predefined one. */
export async function deleteProvider(deps: Deps, actor: Actor, id: ProviderId): Promise<void> {
  const { predefined } = await requireProvider(deps, actor, id)
  if (predefined !== undefined) {
    throw invalid('This provider comes with the service; PATCH its status to "disabled" to do without it')
  }
  const { count } = await deps.db.llmProvider.deleteMany({ where: { organizationId: actor.organizationId, id } })
  if (count === 0) throw notFound('Provider')
}
