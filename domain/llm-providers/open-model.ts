import type { Deps } from '../deps.ts'
import type { CatalogueModel } from '../llm/catalogue.ts'
import { type Model, ModelError } from '../llm/model.ts'
import { findProfile } from '../llm/profiles/find.ts'
import { createModel } from '../llm/providers/create-model.ts'
import { llmsim } from '../llm/simulator/llmsim.ts'
import { keyOf } from './stored-key.ts'

/** Returns a model ready to be called. Throws `UnreadableSecret`. */
export function openModel(deps: Deps, organizationId: string, { name, provider }: CatalogueModel): Model {
  if (provider.type === 'llmsim') return llmsim(name) ?? missing(name)
  const profile = findProfile(provider.type, name)
  return createModel({
    type: provider.type,
    baseUrl: provider.baseUrl,
    apiKey: keyOf(deps, organizationId, provider),
    model: name,
    providerName: provider.name,
    source: `${provider.id}/${name}`,
    maxOutputTokens: profile?.limits?.output,
    isReasoning: profile?.reasoning,
    fetch: deps.models.fetchOf(provider),
  })
}

/** Fails each call, as after a provider with models of its own became a simulator. */
const missing = (name: string): Model =>
  // biome-ignore lint/correctness/useYield: it fails instead.
  async function* () {
    throw new ModelError(`There is no simulated model ${name}.`, { retryable: false })
  }
