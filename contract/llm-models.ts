import { z } from 'zod'
import { DateTime, listOf } from './common.ts'
import { group } from './endpoint.ts'
import { ModelId, wireId } from './ids.ts'

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
    provider_name: z.string(),
    provider_type: z.enum(['openai', 'openai_completions', 'anthropic', 'gemini', 'llmsim']),
    model_id: z.string(),
    display_name: z.string(),
    capabilities: z.array(z.string()),
    is_default: z.boolean(),
    is_favorite: z.boolean(),
    source: z.enum(['manual', 'discovered', 'predefined']),
    status: z.enum(['active', 'disabled']),
    created_at: DateTime,
    updated_at: DateTime,
    profile: LlmModelProfile.nullish(),
  })
  .meta({ id: 'LlmModelWithProvider' })
export type LlmModel = z.infer<typeof LlmModel>

export const llmModelEndpoints = group(
  { tag: 'models', path: '/v1/llm-models', access: 'member' },
  {
    list: {
      method: 'GET',
      summary: 'Lists the models that agents, sessions and messages may name',
      responses: { 200: listOf(LlmModel) },
    },
    get: {
      method: 'GET',
      at: '/{id}',
      summary: 'Gets a model',
      params: z.object({ id: ModelId }),
      responses: { 200: LlmModel },
    },
  },
)
