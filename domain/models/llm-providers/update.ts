import type { ProviderId } from '../../../contract/kit/ids.ts'
import type { LlmProvider, LlmProviderType, UpdateLlmProviderRequest } from '../../../contract/llm-providers.ts'
import type { LlmProvider as ProviderRow } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { audit, audited, givenFields } from '../../kit/audit/entry.ts'
import { invalid, notFound } from '../../kit/errors.ts'
import { MASK } from '../../kit/secrets.ts'
import type { Deps } from '../deps.ts'
import { checkBaseUrl } from './check.ts'
import { type FoundProvider, getProvider, lockProvider, requireProvider } from './read.ts'
import { checkKey, keyColumns, urlOf } from './stored-key.ts'

/**
 * Changes a provider, from the next model call on. Throws `not_found`, and `invalid` for a forbidden address, for a new
 * address without its key, and for settings of a predefined provider that the environment determines.
 */
export async function patchProvider(
  deps: Deps,
  actor: Actor,
  id: ProviderId,
  input: UpdateLlmProviderRequest,
): Promise<LlmProvider> {
  const { organizationId } = actor
  const found = await requireProvider(deps, actor, id)
  if (found.predefined === undefined) {
    await updateOwn(deps, actor, found, input)
  } else {
    refuseOfEnvironment(input)
    const changes = changesOf(input)
    const where = { organizationId_id: { organizationId, id } }
    const told = { action: 'llm_provider.update', target: id, details: givenFields(input) } as const
    await audited(deps, actor, told, (tx) =>
      tx.llmProvider.upsert({ where, create: { organizationId, id, ...changes }, update: changes }),
    )
  }
  return getProvider(deps, actor, id)
}

const changesOf = ({ name, status }: UpdateLlmProviderRequest) => ({
  name: name ?? undefined,
  status: status ?? undefined,
})

async function updateOwn(
  deps: Deps,
  actor: Actor,
  found: FoundProvider,
  input: UpdateLlmProviderRequest,
): Promise<void> {
  const { organizationId } = actor
  const { id } = found.provider
  const baseUrl = input.base_url == null ? undefined : await checkBaseUrl(deps, input.base_url)
  const key = input.api_key == null || input.api_key === MASK ? undefined : input.api_key
  await deps.db.$transaction(async (tx) => {
    await lockProvider(tx, actor, found)
    const where = { organizationId_id: { organizationId, id } }
    const row = await tx.llmProvider.findUniqueOrThrow({ where })
    const connection = { type: input.provider_type ?? undefined, baseUrl }
    if (key === undefined) refuseOtherServer(row, connection)
    else await checkKey(tx, organizationId, key, urlOf(mergeConnection(row, connection)))
    const keys = key === undefined ? {} : keyColumns(deps, organizationId, id, key)
    await tx.llmProvider.update({ where, data: { ...changesOf(input), ...connection, ...keys } })
    await audit(tx, actor, { action: 'llm_provider.update', target: id, details: givenFields(input) })
  })
}

type Connection = { type?: LlmProviderType | undefined; baseUrl?: string | null | undefined }

/** Throws `invalid` for a change that would send the stored key to another server, where its reader would see it. */
function refuseOtherServer(row: ProviderRow, changes: Connection): void {
  if (row.apiKey === null || originOf(mergeConnection(row, changes)) === originOf(mergeConnection(row, {}))) return
  throw invalid('api_key: is required with another server, because the stored key is for the previous one')
}

/** Returns type and address of a provider after changes. Only predefined providers have rows without a type. */
const mergeConnection = ({ type, baseUrl }: ProviderRow, changes: Connection) => ({
  type: changes.type ?? type ?? 'llmsim',
  baseUrl: changes.baseUrl === undefined ? baseUrl : changes.baseUrl,
})

function originOf(connection: ReturnType<typeof mergeConnection>): string | undefined {
  const url = urlOf(connection)
  return url === undefined ? undefined : new URL(url).origin
}

/** Throws `invalid` for fields that come from the environment. Otherwise its key could be sent to another address. */
function refuseOfEnvironment(input: UpdateLlmProviderRequest): void {
  for (const field of ['provider_type', 'base_url', 'api_key'] as const) {
    if (input[field] == null || input[field] === MASK) continue
    throw invalid(`${field}: is set by the environment of the service; add a provider of your own to change it`)
  }
}

/** Deletes a provider with its models. Throws `not_found`, and `invalid` for a predefined provider. */
export async function deleteProvider(deps: Deps, actor: Actor, id: ProviderId): Promise<void> {
  const { predefined } = await requireProvider(deps, actor, id)
  if (predefined !== undefined) {
    throw invalid('This provider comes with the service; PATCH its status to "disabled" to do without it')
  }
  await audited(deps, actor, { action: 'llm_provider.delete', target: id }, async (tx) => {
    const { count } = await tx.llmProvider.deleteMany({ where: { organizationId: actor.organizationId, id } })
    if (count === 0) throw notFound('Provider')
  })
}
