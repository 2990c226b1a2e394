import { z } from 'zod'
import { TurnBudget } from './budgets.ts'
import { DateTime, listOf, type TokenUsage, textUpTo, unsupported } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { ImageId, ModelId, ModelRef, SessionId, wireId } from './kit/ids.ts'
import { clamped, offset } from './kit/query.ts'
import { OutputSchema } from './output-schema.ts'
import { tagList } from './tools.ts'
import { Turn } from './turns.ts'

export type { TokenUsage }

const MiB = 1024 * 1024

export const TextPart = z.object({ type: z.literal('text'), text: z.string() }).meta({ id: 'TextContentPart' })
/** Image, given by `url`, or by `base64` with `media_type`. */
export const ImagePart = z
  .object({
    type: z.literal('image'),
    url: z.string().nullish(),
    base64: z.string().nullish(),
    media_type: z.string().nullish(),
  })
  .meta({ id: 'ImageContentPart' })
export const ImageFilePart = z
  .object({
    type: z.literal('image_file'),
    image_id: z.string(),
    filename: z.string().nullish(),
  })
  .meta({ id: 'ImageFileContentPart' })
export const ToolCallPart = z
  .object({
    type: z.literal('tool_call'),
    id: z.string(),
    name: z.string(),
    arguments: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'ToolCallContentPart' })
export const ToolResultPart = z
  .object({
    type: z.literal('tool_result'),
    tool_call_id: z.string(),
    result: z.unknown().optional(),
    error: z.string().nullish(),
  })
  .meta({ id: 'ToolResultContentPart' })

export const ContentPart = z
  .discriminatedUnion('type', [TextPart, ImagePart, ImageFilePart, ToolCallPart, ToolResultPart])
  .meta({ id: 'ContentPart' })
export type ContentPart = z.infer<typeof ContentPart>

export const InputContentPart = z
  .discriminatedUnion('type', [
    TextPart,
    ImagePart,
    ImageFilePart.extend({ image_id: ImageId }).meta({ id: 'InputImageFileContentPart' }),
  ])
  .meta({ id: 'InputContentPart' })
export type InputContentPart = z.infer<typeof InputContentPart>

export const ReasoningConfig = z.object({
  effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh']).nullish(),
})

/** Settings that a message may change for its own turn only. */
export const Controls = z
  .object({ model_id: wireId('model').nullish(), reasoning: ReasoningConfig.nullish() })
  .meta({ id: 'Controls' })
export type Controls = z.infer<typeof Controls>
/** Stored controls of a turn. `compact`: it summarises the conversation. */
export const StoredControls = Controls.extend({ model_id: ModelId.nullish(), compact: z.literal(true).optional() })
/** Controls in a request. */
export const InputControls = Controls.extend({
  model_id: ModelRef.nullish(),
  model: unsupported('give model_id'),
}).meta({ id: 'InputControls' })
export type InputControls = z.infer<typeof InputControls>

const MessageRole = z.enum(['system', 'user', 'agent', 'tool_result'])

export const Message = z
  .object({
    id: wireId('message'),
    session_id: wireId('session'),
    sequence: z.int(),
    role: MessageRole,
    input_message_id: wireId('message')
      .nullish()
      .meta({ description: 'The user message that this message answers. Absent in user messages.' }),
    turn_id: wireId('turn').nullish().meta({ description: 'In a user message the running turn that it joined.' }),
    content: z.array(ContentPart),
    thinking: z.string().nullish(),
    thinking_signature: z.string().nullish(),
    controls: Controls.nullish(),
    metadata: z.record(z.string(), z.unknown()).nullish().meta({
      description:
        "Metadata of an answer: model, reasoning_effort if set, interrupted if it was cancelled, summary if models read it instead of all messages before, finish_reason if it did not end by itself: length, content_filter, or the provider's own reason; and output_error if it does not fit the schema of its turn.",
    }),
    tags: z.array(z.string()).nullish(),
    created_at: DateTime,
  })
  .meta({ id: 'Message' })
export type Message = z.infer<typeof Message>

/** Returns the text parts of a message's content, joined; other parts are skipped. */
export const textOf = (content: ContentPart[]): string =>
  content.map((part) => (part.type === 'text' ? part.text : '')).join('')

const ONLY_USER = 'must be "user" or be left out'

export const MAX_MESSAGE_TEXT_BYTES = MiB

/** Parts of a message. A string becomes a text part. */
const InputContent = z.codec(
  z.union([
    z.string().meta({ id: 'MessageText' }),
    z
      .array(InputContentPart)
      .min(1, { error: 'must have at least one part' })
      .max(100, { error: 'must have at most 100 parts' })
      .meta({ id: 'InputContentParts' }),
  ]),
  z.custom<InputContentPart[]>(),
  {
    decode: (content) => (typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content),
    encode: (content) => content,
  },
)

/** User message. A limit applies to the text of all parts; base64 images are limited only by the body's size. */
export const UserMessage = z.object(
  {
    role: z
      .enum(MessageRole.options, { error: ONLY_USER })
      .refine((role) => role === 'user', { error: ONLY_USER })
      .optional(),
    content: InputContent.refine((content) => textUpTo(MAX_MESSAGE_TEXT_BYTES).safeParse(textOf(content)).success, {
      error: 'must have at most 1 MiB (1048576 bytes of UTF-8) of text',
    }),
  },
  { error: 'must be an object such as {"content": "Hello"}' },
)

const STREAM = 'send Accept: text/event-stream for a stream'

export const CreateMessageRequest = z
  .object({
    message: UserMessage,
    controls: InputControls.nullish(),
    metadata: z.record(z.string(), z.unknown()).nullish(),
    tags: tagList.nullish(),
    content: unsupported('give message, {"content": "Hello"}'),
    messages: unsupported('give message, {"content": "Hello"}; the session keeps those before'),
    model: unsupported('give controls.model_id'),
    model_id: unsupported('give controls.model_id'),
    stream: z.literal(false, { error: `is not supported; ${STREAM}` }).nullish(),
    budget: TurnBudget.nullish(),
    output_schema: OutputSchema.nullish().meta({
      description: "JSON Schema of the turn's output, instead of the agent's. {}: the turn has none.",
    }),
    response_format: unsupported('give output_schema'),
    on_busy: z.enum(['enqueue', 'reject', 'interrupt', 'steer']).nullish().meta({
      description:
        "While another turn is unfinished: wait for it (the default), answer 409, cancel it and all queued turns, or join it before its next model call. A message that joins a turn has its turn_id, and takes no controls and no budget. Only the turn's author may join it; other messages wait.",
    }),
  })
  .meta({ id: 'CreateMessageRequest' })
export type CreateMessageRequest = z.infer<typeof CreateMessageRequest>

/** Answer to `?wait`. `output` is the turn's last agent message, or null. */
const WaitedTurn = z.object({ message: Message, turn: Turn, output: Message.nullish() }).meta({ id: 'WaitedTurn' })
export const MAX_WAIT_SECONDS = 600
export const waitSeconds = z
  .string()
  .regex(/^\d{1,15}$/, { error: 'must be a whole number of seconds' })
  .transform(Number)
  .refine((seconds) => seconds <= MAX_WAIT_SECONDS, { error: `must be at most ${MAX_WAIT_SECONDS} seconds` })
  .optional()
  .meta({ type: 'integer', minimum: 0, maximum: MAX_WAIT_SECONDS })

const params = z.object({ session_id: SessionId })

export const messageEndpoints = group(
  { tag: 'messages', path: '/v1/sessions/{session_id}/messages', access: 'member' },
  {
    list: {
      operationId: 'listMessages',
      method: 'GET',
      summary: "Lists a session's messages, oldest first",
      params,
      query: z.object({
        order: z.enum(['asc', 'desc']).default('asc'),
        limit: clamped(1000).meta({
          type: 'integer',
          minimum: 1,
          description: 'At most 1000; without it, all messages.',
        }),
        offset,
      }),
      responses: { 200: listOf(Message) },
    },
    create: {
      operationId: 'createMessage',
      method: 'POST',
      summary: 'Posts a user message; a turn answers it',
      description:
        'Answers 201 at once. With ?wait=<seconds> it answers 200 with the finished turn, or 202 when the turn is not finished by then, or waits for its client. ' +
        "With Accept: text/event-stream it streams the events of this message's turn. A client that goes away changes nothing for the turn.",
      params,
      query: z.object({
        stream: unsupported(STREAM),
        wait: waitSeconds,
      }),
      body: CreateMessageRequest,
      creates: true,
      responses: { 201: Message, 200: WaitedTurn, 202: WaitedTurn },
      streams: "The turn's events, from input.message to its end",
    },
  },
)
