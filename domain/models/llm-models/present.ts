import type { LlmModel, LlmModelWithProvider } from '../../../contract/llm-models.ts'
import type { LlmModel as ModelRow } from '../../../prisma/generated/client.ts'
import { toId } from '../../kit/ids.ts'
import type { CatalogueModel } from '../llm/catalogue.ts'
import { findProfile, presentProfile } from '../llm/profiles/find.ts'
import { PREDEFINED_AT } from '../llm-providers/present.ts'

/** A model with its row; an unchanged predefined model has no row. */
export type FoundModel = { model: CatalogueModel; row: ModelRow | undefined; isPredefined: boolean }

export const presentModel = ({ model, row, isPredefined }: FoundModel, defaultId: string | undefined): LlmModel => ({
  id: toId('model', model.id),
  provider_id: toId('provider', model.provider.id),
  model_id: model.name,
  display_name: model.displayName,
  capabilities: row?.capabilities ?? [],
  is_default: model.id === defaultId,
  is_favorite: row?.isFavorite ?? false,
  is_stale: row?.isStale ?? false,
  source: isPredefined ? 'predefined' : (row?.source ?? 'manual'),
  status: row?.status ?? 'active',
  created_at: (isPredefined ? PREDEFINED_AT : (row?.createdAt ?? PREDEFINED_AT)).toISOString(),
  updated_at: (row?.updatedAt ?? PREDEFINED_AT).toISOString(),
})

export function presentWithProvider(found: FoundModel, defaultId: string | undefined): LlmModelWithProvider {
  const { name, provider } = found.model
  const profile = findProfile(provider.type, name)
  return {
    ...presentModel(found, defaultId),
    status: found.model.isActive ? 'active' : 'disabled',
    provider_name: provider.name,
    provider_type: provider.type,
    profile: profile === undefined ? null : presentProfile(profile),
  }
}
