import type { LlmProviderType } from '../../../contract/llm-providers.ts'
import type { LlmModel as ModelRow, LlmProvider as ProviderRow } from '../../../prisma/generated/client.ts'
import type { UsableSecret } from '../../kit/organization-secrets/resolve.ts'
import type { PredefinedModel, PredefinedProvider } from './predefined.ts'

/** Columns of a provider's row that decide whether and how it is used. */
export type StoredProvider = Pick<ProviderRow, 'id' | 'name' | 'type' | 'baseUrl' | 'apiKey' | 'status'> & {
  /** Secret of the organization that the key names. */
  keySecret?: UsableSecret | null
}
/** Columns of a model's row that decide whether and how it is used. */
export type StoredModel = Pick<ModelRow, 'id' | 'providerId' | 'name' | 'displayName' | 'status'>

/** A provider as seen by one organization: predefined, changed by the organization, or its own. */
export type Provider = {
  id: string
  name: string
  type: LlmProviderType
  baseUrl: string | undefined
  /** Key from the environment. */
  apiKey: string | undefined
  /** Key of the organization, encrypted. */
  storedKey: Uint8Array | null
  /** Secret of the organization that the stored key names, if it exists. */
  keySecret: UsableSecret | null
  isActive: boolean
  isPredefined: boolean
}

/** A model as seen by one organization. `isActive` includes its provider. */
export type CatalogueModel = { id: string; name: string; displayName: string; provider: Provider; isActive: boolean }

/** Merges a predefined provider with the organization's changes. */
export const changeProvider = (predefined: PredefinedProvider, row: StoredProvider | undefined): Provider => ({
  id: predefined.id,
  name: row?.name ?? predefined.name,
  type: predefined.type,
  baseUrl: predefined.baseUrl,
  apiKey: predefined.apiKey,
  storedKey: null,
  keySecret: null,
  isActive: row?.status !== 'disabled',
  isPredefined: true,
})

/** Returns an organization's own provider. Undefined for the row of a provider that is no longer predefined. */
export const ownProvider = ({
  type,
  name,
  baseUrl,
  apiKey,
  keySecret,
  ...row
}: StoredProvider): Provider | undefined =>
  type === null || name === null
    ? undefined
    : {
        id: row.id,
        name,
        type,
        baseUrl: baseUrl ?? undefined,
        apiKey: undefined,
        storedKey: apiKey,
        keySecret: keySecret ?? null,
        isActive: row.status !== 'disabled',
        isPredefined: false,
      }

/** Returns a provider of either kind, if it exists. */
export const mergeProvider = (
  predefined: PredefinedProvider | undefined,
  row: StoredProvider | undefined,
): Provider | undefined => (predefined === undefined ? row && ownProvider(row) : changeProvider(predefined, row))

/** Merges a predefined model with the organization's changes. */
export const changeModel = (
  predefined: PredefinedModel,
  row: StoredModel | undefined,
  provider: Provider,
): CatalogueModel => ({
  id: predefined.id,
  name: predefined.name,
  displayName: row?.displayName ?? predefined.displayName,
  provider,
  isActive: provider.isActive && row?.status !== 'disabled',
})

/** Returns a model of the organization's own. Undefined for the row of a model that is no longer predefined. */
export const ownModel = (
  { id, name, displayName, status }: StoredModel,
  provider: Provider,
): CatalogueModel | undefined =>
  name === null
    ? undefined
    : { id, name, displayName: displayName ?? name, provider, isActive: provider.isActive && status !== 'disabled' }

/** Returns a model of either kind, if it exists. */
export const mergeModel = (
  predefined: PredefinedModel | undefined,
  row: StoredModel | undefined,
  provider: Provider,
): CatalogueModel | undefined =>
  predefined === undefined ? row && ownModel(row, provider) : changeModel(predefined, row, provider)

/** Finds a predefined model and its provider. */
export function findPredefined(
  providers: PredefinedProvider[],
  modelId: string,
): { model: PredefinedModel; provider: PredefinedProvider } | undefined {
  for (const provider of providers) {
    const model = provider.models.find(({ id }) => id === modelId)
    if (model !== undefined) return { model, provider }
  }
  return undefined
}
