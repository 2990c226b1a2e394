import type { ModelId } from '../../contract/ids.ts'
import type { LlmModel } from '../../contract/llm-models.ts'
import type { Deps } from '../deps.ts'
import { notFound } from '../errors.ts'
import { toId } from '../ids.ts'
import { type CatalogModel, findModel, listModels } from '../llm/catalog.ts'

export const listLlmModels = (deps: Deps): LlmModel[] => listModels(deps.models).map(presentModel)

/** Returns a model of the catalog. Throws `not_found`. */
export function getLlmModel(deps: Deps, id: ModelId): LlmModel {
  const model = findModel(deps.models, id)
  if (model === undefined) throw notFound('Model')
  return presentModel(model)
}

/** Creation time of the predefined models, which is that of their ids. */
const PREDEFINED_AT = '2024-11-16T00:00:00.000Z'

const presentModel = (model: CatalogModel): LlmModel => ({
  id: toId('model', model.id),
  provider_id: toId('provider', model.providerId),
  provider_name: model.providerName,
  provider_type: model.providerType,
  model_id: model.name,
  display_name: model.displayName,
  capabilities: [],
  is_default: model.isDefault,
  is_favorite: false,
  source: 'predefined',
  status: 'active',
  created_at: PREDEFINED_AT,
  updated_at: PREDEFINED_AT,
})
