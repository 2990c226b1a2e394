import { type LlmModel, llmModelEndpoints } from '../../contract/llm-models.ts'
import type { Deps } from '../../domain/deps.ts'
import { notFound } from '../../domain/errors.ts'
import { type CatalogModel, findModel, listModels } from '../../domain/llm/catalog.ts'
import { type Handle, reply } from '../http/handle.ts'

export function modelRoutes(handle: Handle, deps: Deps): void {
  handle(llmModelEndpoints.list, async () => reply(200, { data: listModels(deps.models).map(presentModel) }))
  handle(llmModelEndpoints.get, async ({ params }) => {
    const model = findModel(deps.models, params.id)
    if (model === undefined) throw notFound('Model')
    return reply(200, presentModel(model))
  })
}

/** Predefined models are as old as their ids. */
const PREDEFINED_AT = '2024-11-16T00:00:00.000Z'

const presentModel = (model: CatalogModel): LlmModel => ({
  id: model.id,
  provider_id: model.providerId,
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
