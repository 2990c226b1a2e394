import { SecretRefused } from '../../kit/organization-secrets/resolve.ts'
import { UnreadableSecret } from '../../kit/secrets.ts'
import type { Deps } from '../deps.ts'
import type { CatalogueModel } from '../llm/catalogue.ts'
import { type Model, ModelError } from '../llm/model.ts'
import { findProfile } from '../llm/profiles/find.ts'
import { createModel } from '../llm/providers/create-model.ts'
import { llmsim } from '../llm/simulator/llmsim.ts'
import { damagedKey, keyOf } from './stored-key.ts'

/** Returns a model ready to be called. Throws `UnreadableSecret` if another process may be able to read its key. */
export function openModel(deps: Deps, organizationId: string, model: CatalogueModel): Model {
  try {
    return open(deps, organizationId, model)
  } catch (error) {
    if (error instanceof UnreadableSecret && error.isDamaged) return failing(`${damagedKey(model.provider)}.`)
    if (error instanceof SecretRefused) return failing(error.message)
    throw error
  }
}

function open(deps: Deps, organizationId: string, { name, provider }: CatalogueModel): Model {
  // The provider may have had another type before.
  if (provider.type === 'llmsim') return llmsim(name) ?? failing(`There is no simulated model ${name}.`)
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

const failing = (message: string): Model =>
  // biome-ignore lint/correctness/useYield: it fails instead.
  async function* () {
    throw new ModelError(message, { retryable: false })
  }
