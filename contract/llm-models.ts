import { z } from 'zod'
import { DateTime, listOf, nameUpTo } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { ModelId, ProviderId, wireId } from './kit/ids.ts'
import { flag } from './kit/query.ts'
import { LlmProviderType, LlmStatus } from './llm-providers.ts'

const LlmModelSource = z.enum(['manual', 'discovered', 'predefined']).meta({ id: 'LlmModelSource' })
export type LlmModelSource = z.infer<typeof LlmModelSource>

export const Modality = z.enum(['text', 'image', 'audio', 'video']).meta({ id: 'Modality' })
export type Modality = z.infer<typeof Modality>

export const ReasoningEffort = z
  .enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh'])
  .meta({ id: 'ReasoningEffort' })
export type ReasoningEffort = z.infer<typeof ReasoningEffort>

const ReasoningEffortValue = z.object({ value: ReasoningEffort, name: z.string() }).meta({ id: 'ReasoningEffortValue' })

const ReasoningEffortConfig = z
  .object({ values: z.array(ReasoningEffortValue), default: ReasoningEffort })
  .meta({ id: 'ReasoningEffortConfig' })

/** Prices in USD for a million tokens. */
const LlmModelCost = z
  .object({ input: z.number(), output: z.number(), cache_read: z.number().nullish() })
  .meta({ id: 'LlmModelCost' })

const LlmModelLimits = z.object({ context: z.int(), output: z.int() }).meta({ id: 'LlmModelLimits' })

const LlmModelModalities = z
  .object({ input: z.array(Modality), output: z.array(Modality) })
  .meta({ id: 'LlmModelModalities' })

export const LlmModelProfile = z
  .object({
    name: z.string(),
    family: z.string(),
    attachment: z.boolean(),
    reasoning: z.boolean(),
    temperature: z.boolean(),
    tool_call: z.boolean(),
    structured_output: z.boolean(),
    open_weights: z.boolean(),
    knowledge: z.string().nullish(),
    release_date: z.string().nullish(),
    last_updated: z.string().nullish(),
    modalities: LlmModelModalities.nullish(),
    limits: LlmModelLimits.nullish(),
    cost: LlmModelCost.nullish(),
    reasoning_effort: ReasoningEffortConfig.nullish(),
  })
  .meta({ id: 'LlmModelProfile' })
export type LlmModelProfile = z.infer<typeof LlmModelProfile>

export const LlmModel = z
  .object({
    id: wireId('model'),
    provider_id: wireId('provider'),
    model_id: z.string().meta({ description: "The provider's own id of the model." }),
    display_name: z.string(),
    capabilities: z.array(z.string()),
    is_default: z.boolean(),
    is_favorite: z.boolean(),
    is_stale: z.boolean().meta({ description: "The provider's list no longer has this discovered model." }),
    source: LlmModelSource,
    status: LlmStatus,
    created_at: DateTime,
    updated_at: DateTime,
  })
  .meta({ id: 'LlmModel' })
export type LlmModel = z.infer<typeof LlmModel>

export const LlmModelWithProvider = LlmModel.extend({
  status: LlmStatus.meta({ description: 'Also disabled while its provider is.' }),
  provider_name: z.string(),
  provider_type: LlmProviderType,
  profile: LlmModelProfile.nullish().meta({ description: 'Null if the service does not know the model.' }),
}).meta({ id: 'LlmModelWithProvider' })
export type LlmModelWithProvider = z.infer<typeof LlmModelWithProvider>

const name = nameUpTo(255)
/** A provider's own id of a model, which is sent to the provider. */
const modelName = name.refine((text) => /^[^\p{Cc}\p{Zl}\p{Zp}]+$/u.test(text), {
  error: 'must have no control characters',
})
const capabilities = z
  .array(nameUpTo(64))
  .max(50, { error: 'must have at most 50 entries' })
  .meta({ description: 'Labels for people; the profile says what the model can do.' })

const CreateLlmModelRequest = z
  .object({
    model_id: modelName,
    display_name: name,
    capabilities: capabilities.optional(),
    is_default: z.boolean().optional(),
    is_favorite: z.boolean().optional(),
  })
  .meta({ id: 'CreateLlmModelRequest' })
export type CreateLlmModelRequest = z.infer<typeof CreateLlmModelRequest>

const UpdateLlmModelRequest = z
  .object({
    model_id: modelName.nullish(),
    display_name: name.nullish(),
    capabilities: capabilities.nullish(),
    is_default: z.boolean().nullish().meta({ description: 'True makes it the default model of the organization.' }),
    is_favorite: z.boolean().nullish(),
    status: LlmStatus.nullish(),
  })
  .meta({ id: 'UpdateLlmModelRequest' })
export type UpdateLlmModelRequest = z.infer<typeof UpdateLlmModelRequest>

const params = z.object({ id: ModelId })
const ofProvider = z.object({ provider_id: ProviderId })
const stale = flag.meta({ type: 'boolean', description: 'Lists stale models too.' })

export const llmModelEndpoints = group(
  { tag: 'models', path: '/v1', access: 'admin' },
  {
    list: {
      operationId: 'listModels',
      method: 'GET',
      at: '/llm-models',
      access: 'member',
      summary: 'Lists the models that agents, sessions and messages may name, in catalogue order',
      query: z.object({
        source: LlmModelSource.optional(),
        include_stale: stale,
        favorites_only: flag.meta({ type: 'boolean' }),
      }),
      responses: { 200: listOf(LlmModelWithProvider) },
    },
    get: {
      operationId: 'getModel',
      method: 'GET',
      at: '/llm-models/{id}',
      access: 'member',
      summary: 'Gets a model',
      params,
      responses: { 200: LlmModelWithProvider },
    },
    patch: {
      operationId: 'updateModel',
      method: 'PATCH',
      at: '/llm-models/{id}',
      summary: 'Changes a model, or makes it the default',
      params,
      body: UpdateLlmModelRequest,
      responses: { 200: LlmModel },
      errors: [409],
    },
    delete: {
      operationId: 'deleteModel',
      method: 'DELETE',
      at: '/llm-models/{id}',
      summary: 'Deletes a model; agents and sessions that use it fall back to the next choice',
      params,
      responses: { 204: null },
    },
    listOfProvider: {
      operationId: 'listProviderModels',
      method: 'GET',
      at: '/llm-providers/{provider_id}/models',
      access: 'member',
      summary: "Lists a provider's models, in catalogue order",
      params: ofProvider,
      query: z.object({ include_stale: stale }),
      responses: { 200: listOf(LlmModel) },
    },
    create: {
      operationId: 'createModel',
      method: 'POST',
      at: '/llm-providers/{provider_id}/models',
      summary: 'Adds a model to a provider',
      params: ofProvider,
      body: CreateLlmModelRequest,
      creates: true,
      responses: { 201: LlmModel },
    },
  },
)
