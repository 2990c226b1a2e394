import { z } from 'zod'
import { DateTime, listOf } from './common.ts'
import { group } from './endpoint.ts'
import { ModelId, wireId } from './ids.ts'

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
