import { z } from 'zod'
import { textUpTo } from '../../../contract/kit/common.ts'
import { group } from '../../../contract/kit/endpoint.ts'
import { AgentId } from '../../../contract/kit/ids.ts'

/** Part of a UI message. Its fields depend on its type, and only parts that count are looked at. */
export type UIPart = z.infer<typeof UIPart>
const UIPart = z.looseObject({ type: z.string() })

export type UIMessage = z.infer<typeof UIMessage>
const UIMessage = z.looseObject({ id: z.string().optional(), role: z.string(), parts: z.array(UIPart) })

export type ChatRequest = z.infer<typeof ChatRequest>
const ChatRequest = z.object({
  id: textUpTo(255).min(1, { error: 'must not be empty' }),
  messages: z.array(UIMessage).min(1, { error: 'must have a message' }),
  trigger: z.string().nullish(),
  messageId: z.string().nullish(),
})

const params = z.object({ version: z.enum(['5', '6', '7']), agent_id: AgentId })
const ofChat = params.extend({ chat_id: z.string().max(255) })
const BODY_BYTES = 16 * 1024 * 1024

export const chatEndpoints = group(
  { tag: 'faces', path: '/v1/faces/ai-sdk/{version}/{agent_id}', access: 'member' },
  {
    send: {
      operationId: 'sendChat',
      method: 'POST',
      summary: 'Posts the last message of a chat, or answers pending calls',
      params,
      query: z.object({ text: z.enum(['held', 'streamed']).optional() }),
      body: ChatRequest,
      bodyLimitBytes: BODY_BYTES,
      responses: {},
      streams: 'UI message stream of the turn',
      errors: [404, 409],
    },
    resume: {
      operationId: 'resumeChat',
      method: 'GET',
      at: '/{chat_id}/stream',
      summary: 'Streams the running turn of a chat from its start',
      params: ofChat,
      query: z.object({ text: z.enum(['held', 'streamed']).optional() }),
      responses: { 204: null },
      streams: 'UI message stream of the turn',
    },
    history: {
      operationId: 'listChat',
      method: 'GET',
      at: '/{chat_id}/messages',
      summary: 'Lists a chat as UI messages, oldest first',
      params: ofChat,
      responses: { 200: z.array(UIMessage) },
    },
    stop: {
      operationId: 'stopChat',
      method: 'POST',
      at: '/{chat_id}/stop',
      summary: 'Cancels the running turn of a chat',
      params: ofChat,
      body: z.object({ activeStreamId: z.string().nullish() }),
      bodyOptional: true,
      responses: { 204: null },
      errors: [404],
    },
  },
)
