import { z } from 'zod'
import type { Content, ToolCall } from './content.ts'
import { fragmentsOf } from './content.ts'
import {
  type FakeProvider,
  frameData,
  type ProviderRequest,
  type ScriptedAnswer,
  startProvider,
  type WireFormat,
} from './scripted-server.ts'

/** Fields of a Chat Completions request that the tests read. Other fields are passed through. */
const RequestBody = z.looseObject({
  model: z.string(),
  stream: z.literal(true),
  messages: z.array(z.looseObject({ role: z.string() })).min(1),
  tools: z.array(z.unknown()).optional(),
  reasoning_effort: z.string().optional(),
})

/** `thinking` is sent as `reasoning_content`, as DeepSeek and vLLM do. */
type ChatContent = Omit<Content, 'blocks'> & {
  usage?: { prompt_tokens: number; completion_tokens: number; prompt_tokens_details?: { cached_tokens: number } }
}

export type FakeOpenaiRequest = ProviderRequest<z.infer<typeof RequestBody>>

/** Returns the text of the last message that the provider was given. */
export function questionOf({ body }: FakeOpenaiRequest): string {
  const content: unknown = body.messages.at(-1)?.content
  return typeof content === 'string' ? content : ((content as { text?: string }[])[0]?.text ?? '')
}
export type FakeOpenaiAnswer = ScriptedAnswer<ChatContent>
export type FakeOpenai = FakeProvider<z.infer<typeof RequestBody>>

const frameOf = ({ body }: FakeOpenaiRequest) => ({
  id: 'chatcmpl-fake',
  object: 'chat.completion.chunk',
  created: 1_700_000_000,
  model: body.model,
})

export const chatCompletions: WireFormat<z.infer<typeof RequestBody>, ChatContent> = {
  basePath: '/v1',
  path: /^\/chat\/completions$/,
  parse: (body) => RequestBody.parse(body),
  toEvents: (content, request) =>
    toDeltas(content).map((delta) => ({ ...frameOf(request), choices: [{ index: 0, delta, finish_reason: null }] })),
  toFinish: ({ finishReason, toolCalls, usage }, request) => [
    {
      ...frameOf(request),
      choices: [{ index: 0, delta: {}, finish_reason: finishReason ?? (toolCalls ? 'tool_calls' : 'stop') }],
    },
    { ...frameOf(request), choices: [], usage: usage ?? { prompt_tokens: 7, completion_tokens: 3 } },
    '[DONE]',
  ],
  toError: (_status, message) => ({ error: { message, type: 'fake_error', param: null, code: null } }),
  frame: frameData,
}

/** Starts a provider that speaks Chat Completions. */
export const startFakeOpenai = (
  answers: FakeOpenaiAnswer[] | ((request: FakeOpenaiRequest, index: number) => FakeOpenaiAnswer),
): Promise<FakeOpenai> => startProvider(chatCompletions, answers)

function toDeltas({ thinking = [], text = [], toolCalls = [] }: ChatContent): object[] {
  return [
    { role: 'assistant', content: '' },
    ...thinking.map((reasoning_content) => ({ reasoning_content })),
    ...text.map((content) => ({ content })),
    ...toolCalls.flatMap(toToolCallDeltas),
  ]
}

function toToolCallDeltas(call: ToolCall, index: number): object[] {
  return [
    { tool_calls: [{ index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } }] },
    ...fragmentsOf(call.arguments).map((fragment) => ({ tool_calls: [{ index, function: { arguments: fragment } }] })),
  ]
}
