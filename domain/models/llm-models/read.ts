import type { ModelId } from '../../../contract/kit/ids.ts'
import type { LlmModel, LlmModelWithProvider } from '../../../contract/llm-models.ts'
import type { Actor } from '../../kit/actor.ts'
import { notFound } from '../../kit/errors.ts'
import type { Deps } from '../deps.ts'
import { findPredefined, mergeModel } from '../llm/catalogue.ts'
import { readDefaultModelId } from '../llm/read-models.ts'
import { type FoundProvider, findProvider } from '../llm-providers/read.ts'
import { type FoundModel, presentModel, presentWithProvider } from './present.ts'

/** Returns a model of the organization. Throws `not_found`. */
export async function getModel(deps: Deps, actor: Actor, id: ModelId): Promise<LlmModelWithProvider> {
  const found = await requireModel(deps, actor, id)
  return presentWithProvider(found, await readDefaultModelId(deps, actor.organizationId))
}

/** Returns a model without its provider. Throws `not_found`. */
export async function getModelAlone(deps: Deps, actor: Actor, id: ModelId): Promise<LlmModel> {
  const found = await requireModel(deps, actor, id)
  return presentModel(found, await readDefaultModelId(deps, actor.organizationId))
}

/** Returns a model of the organization with its provider. Throws `not_found`. */
export async function requireModel(deps: Deps, actor: Actor, id: ModelId): Promise<FoundModel & { of: FoundProvider }> {
  const { organizationId } = actor
  const known = findPredefined(deps.models.predefined, id)
  const stored = await deps.db.llmModel.findUnique({ where: { organizationId_id: { organizationId, id } } })
  const row = stored ?? undefined
  const providerId = known?.provider.id ?? row?.providerId
  if (providerId === undefined) throw notFound('Model')
  const of = await findProvider(deps, actor, providerId)
  const model = of && mergeModel(known?.model, row, of.provider)
  if (of === undefined || model === undefined) throw notFound('Model')
  return { model, row, isPredefined: known !== undefined, of }
}
