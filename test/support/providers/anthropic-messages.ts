import { z } from 'zod'
import { blocksOf, type Content, type ContentBlock, fragmentsOf, hasCalls } from './content.ts'
import { frameNamed, type WireFormat } from './scripted-server.ts'

/** Fields of a request to Anthropic's Messages API that the tests read. */
const RequestBody = z.looseObject({
  model: z.string(),
  max_tokens: z.int().min(1),
  stream: z.literal(true),
  messages: z.array(z.looseObject({ role: z.enum(['user', 'assistant']), content: z.array(z.looseObject({})).min(1) })),
})
type Body = z.infer<typeof RequestBody>

const USAGE = { input_tokens: 4, cache_read_input_tokens: 2, cache_creation_input_tokens: 1 }

const ERROR_TYPES: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  429: 'rate_limit_error',
  500: 'api_error',
  529: 'overloaded_error',
}

/** Anthropic's Messages API. */
export const anthropicMessages: WireFormat<Body, Content> = {
  basePath: '/v1',
  path: /^\/messages$/,
  parse: (body) => RequestBody.parse(body),
  toEvents: (content, { body }) => [
    {
      type: 'message_start',
      message: {
        id: 'msg_fake',
        type: 'message',
        role: 'assistant',
        model: body.model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { ...USAGE, output_tokens: 1, ...content.usage },
      },
    },
    { type: 'ping' },
    ...blocksOf(content).flatMap(toBlockEvents),
  ],
  toFinish: (content) => [
    {
      type: 'message_delta',
      delta: {
        stop_reason: content.finishReason ?? (hasCalls(content) ? 'tool_use' : 'end_turn'),
        stop_sequence: null,
      },
      usage: { output_tokens: 3, ...content.usage },
    },
    { type: 'message_stop' },
  ],
  toError: (status, message) => ({ type: 'error', error: { type: ERROR_TYPES[status] ?? 'api_error', message } }),
  frame: frameNamed,
}

function toBlockEvents(block: ContentBlock, index: number): object[] {
  const { content_block, deltas } = toBlock(block)
  return [
    { type: 'content_block_start', index, content_block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
}

function toBlock(block: ContentBlock): { content_block: object; deltas: object[] } {
  switch (block.type) {
    case 'thinking':
      return {
        content_block: { type: 'thinking', thinking: '', signature: '' },
        deltas: [
          ...block.deltas.map((thinking) => ({ type: 'thinking_delta', thinking })),
          { type: 'signature_delta', signature: block.signature ?? 'unsigned' },
        ],
      }
    case 'redacted':
      return { content_block: { type: 'redacted_thinking', data: block.data }, deltas: [] }
    case 'text':
      return {
        content_block: { type: 'text', text: '' },
        deltas: block.deltas.map((text) => ({ type: 'text_delta', text })),
      }
    case 'call':
      return {
        content_block: { type: 'tool_use', id: block.id, name: block.name, input: {} },
        deltas: fragmentsOf(block.arguments).map((partial_json) => ({ type: 'input_json_delta', partial_json })),
      }
  }
}
