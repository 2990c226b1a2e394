import { z } from 'zod'
import { DateTime, listOf, nameUpTo, textUpTo } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { ProviderId, wireId } from './kit/ids.ts'

export const LlmProviderType = z
  .enum(['openai', 'openai_completions', 'anthropic', 'gemini', 'llmsim'])
  .meta({ id: 'LlmProviderType' })
export type LlmProviderType = z.infer<typeof LlmProviderType>

/** A disabled provider or model stays in its list and is not used. */
export const LlmStatus = z.enum(['active', 'disabled'])

export const LlmProvider = z
  .object({
    id: wireId('provider'),
    name: z.string(),
    provider_type: LlmProviderType,
    base_url: z.string().nullish(),
    api_key_set: z.boolean(),
    status: LlmStatus,
    is_predefined: z.boolean().meta({ description: 'Comes with the installation: it may be renamed and disabled.' }),
    last_synced_at: DateTime.nullish(),
    created_at: DateTime,
    updated_at: DateTime,
  })
  .meta({ id: 'LlmProvider' })
export type LlmProvider = z.infer<typeof LlmProvider>

const MAX_KEY_BYTES = 8 * 1024
const MAX_URL_BYTES = 2 * 1024

/** Key for a header. Spaces around it, left by pasting, are removed. */
const apiKey = textUpTo(MAX_KEY_BYTES)
  .trim()
  .refine((key) => /^[\x21-\x7e]*$/.test(key), { error: 'must be printable ASCII characters without spaces' })
  .meta({ description: 'Stored encrypted and never shown.' })
const baseUrl = textUpTo(MAX_URL_BYTES).meta({
  description: "The provider's own public address by default. Its path is kept: https://example.com/v1",
})

const CreateLlmProviderRequest = z
  .object({
    name: nameUpTo(255),
    provider_type: LlmProviderType,
    base_url: baseUrl.nullish(),
    api_key: apiKey.nullish(),
  })
  .meta({ id: 'CreateLlmProviderRequest' })
export type CreateLlmProviderRequest = z.infer<typeof CreateLlmProviderRequest>

const UpdateLlmProviderRequest = z
  .object({
    name: nameUpTo(255).nullish(),
    provider_type: LlmProviderType.nullish(),
    base_url: baseUrl.nullish().meta({ description: '"" resets it to the provider\'s own address.' }),
    api_key: apiKey.nullish().meta({ description: '"" removes the key, and *** keeps it.' }),
    status: LlmStatus.nullish(),
  })
  .meta({ id: 'UpdateLlmProviderRequest' })
export type UpdateLlmProviderRequest = z.infer<typeof UpdateLlmProviderRequest>

const count = z.int().min(0)
const ModelSync = z
  .discriminatedUnion('status', [
    z
      .object({ status: z.literal('success'), created: count, updated: count, stale: count })
      .meta({ id: 'SyncedModels' }),
    z.object({ status: z.literal('not_supported') }).meta({ id: 'SyncNotSupported' }),
  ])
  .meta({ id: 'ModelSync' })
export type ModelSync = z.infer<typeof ModelSync>

const params = z.object({ provider_id: ProviderId })

export const llmProviderEndpoints = group(
  { tag: 'providers', path: '/v1/llm-providers', access: 'admin' },
  {
    list: {
      operationId: 'listProviders',
      method: 'GET',
      access: 'member',
      summary: 'Lists the providers, newest first, predefined ones last',
      responses: { 200: listOf(LlmProvider) },
    },
    create: {
      operationId: 'createProvider',
      method: 'POST',
      summary: 'Adds a provider',
      body: CreateLlmProviderRequest,
      creates: true,
      responses: { 201: LlmProvider },
      errors: [422],
    },
    get: {
      operationId: 'getProvider',
      method: 'GET',
      at: '/{provider_id}',
      access: 'member',
      summary: 'Gets a provider',
      params,
      responses: { 200: LlmProvider },
    },
    patch: {
      operationId: 'updateProvider',
      method: 'PATCH',
      at: '/{provider_id}',
      summary: 'Changes a provider',
      params,
      body: UpdateLlmProviderRequest,
      responses: { 200: LlmProvider },
      errors: [422],
    },
    delete: {
      operationId: 'deleteProvider',
      method: 'DELETE',
      at: '/{provider_id}',
      summary: 'Deletes a provider with its models; agents and sessions that use one fall back to the next choice',
      params,
      responses: { 204: null },
    },
    sync: {
      operationId: 'syncModels',
      method: 'POST',
      at: '/{provider_id}/sync-models',
      summary: "Updates the discovered models from the provider's own list",
      description:
        '502 with the reason if the provider does not answer, and with the field api_key if it refuses its key. A discovered model that is missing from the list becomes stale: ' +
        'it is hidden, and keeps working where it is named.',
      params,
      responses: { 200: ModelSync },
      errors: [409, 502],
    },
  },
)
