import { z } from 'zod'
import { group } from '../../../contract/kit/endpoint.ts'
import { ReasoningConfig } from '../../../contract/messages.ts'
import { OutputSchema } from '../../../contract/output-schema.ts'

/** Part of a message's content. Its fields depend on its type. */
export type ContentPart = z.infer<typeof ContentPart>
const ContentPart = z.looseObject({ type: z.string() })

export type ChatMessage = z.infer<typeof ChatMessage>
const ChatMessage = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), z.array(ContentPart)]).nullish(),
  tool_call_id: z.string().nullish(),
})

const FunctionTool = z.looseObject({
  type: z.literal('function', { error: 'must be function' }),
  function: z.looseObject({
    name: z.string(),
    description: z.string().nullish(),
    parameters: z.record(z.string(), z.unknown()).nullish(),
  }),
})

/** Fields of a request that count; clients send others, which have no meaning here. */
export type CompletionRequest = z.infer<typeof CompletionRequest>
export const CompletionRequest = z.looseObject({
  model: z.string().min(1, { error: 'must be the id or the name of an agent' }),
  messages: z.array(ChatMessage).min(1, { error: 'must have a message' }),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.literal(1, { error: 'must be 1' }).nullish(),
  tools: z.array(FunctionTool).nullish(),
  tool_choice: z.unknown().optional(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
  response_format: z
    .looseObject({
      type: z.string(),
      json_schema: z.looseObject({ schema: OutputSchema.nullish() }).nullish(),
    })
    .nullish(),
  reasoning_effort: ReasoningConfig.shape.effort.catch(null),
})

const Model = z.object({
  id: z.string(),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string(),
  name: z.string(),
})
export type Model = z.infer<typeof Model>

const BODY_BYTES = 16 * 1024 * 1024

export const openaiEndpoints = group(
  { tag: 'faces', path: '/v1', access: 'member' },
  {
    listModels: {
      operationId: 'listOpenaiModels',
      method: 'GET',
      at: '/models',
      summary: 'Lists the agents as models',
      responses: { 200: z.object({ object: z.literal('list'), data: z.array(Model) }) },
    },
    getModel: {
      operationId: 'getOpenaiModel',
      method: 'GET',
      at: '/models/{model}',
      summary: 'Gets an agent as a model',
      params: z.object({ model: z.string() }),
      responses: { 200: Model },
    },
    complete: {
      operationId: 'completeChat',
      method: 'POST',
      at: '/chat/completions',
      summary: 'Has an agent answer the last message',
      query: z.object({ text: z.enum(['held', 'streamed']).optional() }),
      body: CompletionRequest,
      bodyLimitBytes: BODY_BYTES,
      responses: { 200: z.looseObject({ object: z.literal('chat.completion') }) },
      streams: 'Chunks of the completion',
      errors: [404, 409, 502],
    },
  },
)
