import { z } from 'zod'
import { ToolCallStatus, TurnErrorCode } from './errors.ts'
import { CostUsd, DateTime, listOf, milliseconds, TokenUsage } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { SessionId, TurnId, wireId, wireUuid } from './kit/ids.ts'
import { repeated } from './kit/query.ts'
import { ContentPart, Message, ToolCallPart } from './messages.ts'
import { TurnOutput } from './output-schema.ts'
import { ToolPolicy } from './tools.ts'
import { RequestedCall } from './turns.ts'

const turn_id = wireId('turn')
const input_message_id = wireId('message')
const agent = { harness_id: wireId('harness'), agent_id: wireId('agent').nullish() }
const usage = TokenUsage.nullish()
const cost_usd = CostUsd.nullish()

const ModelMetadata = z
  .object({ model: z.string(), model_id: wireUuid.nullish(), provider_id: wireUuid.nullish() })
  .meta({ id: 'ModelMetadata' })
const ToolCall = ToolCallPart.omit({ type: true }).meta({ id: 'ToolCall' })
const ToolCallSummary = z.object({
  id: z.string(),
  name: z.string(),
  display_name: z.string().nullish(),
  policy: ToolPolicy.nullish(),
})
const ToolDefinitionSummary = z.object({
  name: z.string(),
  description: z.string(),
  display_name: z.string().nullish(),
})

const delta = z.object({ turn_id, delta: z.string(), accumulated: z.string() })
const outputStarted = z.object({ turn_id, model: z.string().nullish() })

const LlmGenerationData = z.object({
  messages: z.array(Message),
  tools: z.array(ToolDefinitionSummary).optional(),
  output: z.object({ text: z.string().nullish(), tool_calls: z.array(ToolCall).optional() }),
  metadata: z.object({
    model: z.string(),
    provider: z.string().nullish(),
    success: z.boolean(),
    error: z.string().nullish(),
    duration_ms: milliseconds.nullish(),
    time_to_first_token_ms: milliseconds.nullish(),
    finish_reasons: z.array(z.string()).nullish(),
    response_id: z.string().nullish(),
    usage,
    cost_usd,
    reasoning_effort: z.string().nullish(),
    max_output_tokens: z.int().min(1).nullish(),
    output_schema_sha256: z.string().nullish(),
    system_prompt_sha256: z.string().nullish(),
    retry: z.object({ attempts: z.int().min(0), total_wait_ms: milliseconds }).nullish(),
    compaction: z
      .object({
        compacted: z.boolean(),
        duration_ms: milliseconds.nullish(),
        input_tokens_before: z.int().min(0).nullish(),
        input_tokens_after: z.int().min(0).nullish(),
      })
      .nullish(),
  }),
})

export const Compacted = z
  .object({
    messages: z.int().min(0),
    first_message_id: wireId('message').nullish(),
    last_message_id: wireId('message').nullish(),
  })
  .meta({ id: 'Compacted', description: 'Messages that models no longer read: their number, the first and the last.' })

/** Payload schemas of the event types, as clients see them. */
export const eventData = {
  'input.message': z.object({ message: Message }),
  'output.message.started': outputStarted,
  'output.message.delta': delta,
  'output.message.completed': z.object({ message: Message, metadata: ModelMetadata.nullish(), usage }),
  'turn.started': z.object({ turn_id, input_message_id, input_content: z.string().nullish() }),
  'turn.completed': z.object({
    turn_id,
    iterations: z.int().min(0),
    duration_ms: milliseconds.nullish(),
    input_content: z.string().nullish(),
    finish_reason: z.string().nullish(),
    output: TurnOutput.nullish(),
    usage,
    cost_usd,
  }),
  'turn.failed': z.object({ turn_id, error: z.string(), error_code: TurnErrorCode.nullish() }),
  'turn.cancelled': z.object({ turn_id, reason: z.string().nullish(), usage }),
  'reason.started': z.object({
    ...agent,
    metadata: ModelMetadata.nullish(),
  }),
  'reason.completed': z.object({
    success: z.boolean(),
    has_tool_calls: z.boolean(),
    tool_call_count: z.int().min(0),
    text_preview: z.string().nullish(),
    error: z.string().nullish(),
    duration_ms: milliseconds.nullish(),
    usage,
  }),
  'reason.retrying': z.object({
    attempt: z.int().min(1).meta({ description: 'Number of the attempt that failed, from 1.' }),
    error: z.string(),
    retry_after_ms: z.int().min(0).meta({ description: 'Time until the model is asked again.' }),
  }),
  'reason.thinking.started': outputStarted,
  'reason.thinking.delta': delta,
  'reason.thinking.completed': z.object({ turn_id, thinking: z.string() }),
  'act.started': z.object({ tool_calls: z.array(ToolCallSummary) }),
  'act.completed': z.object({
    completed: z.boolean(),
    success_count: z.int().min(0),
    error_count: z.int().min(0),
    duration_ms: milliseconds.nullish(),
  }),
  'tool.started': z.object({
    tool_call: ToolCall,
    display_name: z.string().nullish(),
    child: z
      .object({ agent_id: wireId('agent'), session_id: wireId('session'), turn_id })
      .optional()
      .meta({
        description: 'Turn of the agent that the call asks. It exists a moment later, in a session of its own.',
      }),
  }),
  'tool.progress': z.object({
    turn_id,
    tool_call_id: z.string(),
    progress: z.number().meta({ description: 'Grows with each event of the call.' }),
    total: z.number().nullish(),
    message: z.string().nullish(),
  }),
  'tool.completed': z.object({
    tool_call_id: z.string(),
    tool_name: z.string(),
    display_name: z.string().nullish(),
    status: ToolCallStatus,
    success: z.boolean(),
    result: z.array(ContentPart).nullish(),
    error: z.string().nullish(),
    duration_ms: milliseconds.nullish(),
  }),
  'tool.call_requested': z.object({ tool_calls: z.array(RequestedCall) }),
  'llm.generation': LlmGenerationData,
  'session.started': z.object({
    ...agent,
    model_id: wireId('model').nullish(),
  }),
  'session.activated': z.object({ turn_id, input_message_id }),
  'session.compacted': z.object({ turn_id, message_id: wireId('message'), dropped: Compacted }),
  'session.idled': z.object({ turn_id, iterations: z.int().min(0).nullish(), usage }),
} as const

export type EventType = keyof typeof eventData
export type EventData<T extends EventType> = z.infer<(typeof eventData)[T]>
export const eventTypes = Object.keys(eventData) as EventType[]

/** Types of the events that end a turn; no other event of the turn follows one. */
export const turnEndTypes = ['turn.completed', 'turn.failed', 'turn.cancelled'] as const satisfies EventType[]
export const isTurnEnd = (type: string): boolean => (turnEndTypes as readonly string[]).includes(type)

/** Context of an event: `{}` for input.message; every other event of a turn names the turn and its span. */
export const EventContext = z
  .object({
    turn_id: turn_id.nullish(),
    input_message_id: input_message_id.nullish(),
    trace_id: z.string().nullish(),
    exec_id: z.string().nullish(),
    span_id: z.string().nullish(),
    parent_span_id: z.string().nullish(),
  })
  .meta({ id: 'EventContext' })
export type EventContext = z.infer<typeof EventContext>

/** Returns the schema of the events of one type: `TurnStartedEvent` with `TurnStartedData` for turn.started. */
function eventOf(type: EventType) {
  const name = type
    .split(/[._]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
  const data: z.ZodType = eventData[type]
  return z
    .object({
      id: wireId('event'),
      type: z.literal(type),
      ts: DateTime,
      session_id: wireId('session'),
      sequence: z.int().nullish(),
      context: EventContext,
      data: data.meta({ id: `${name}Data` }),
      metadata: z.unknown().optional(),
      tags: z.array(z.string()).nullish(),
    })
    .meta({ id: `${name}Event` })
}

type OneEvent = ReturnType<typeof eventOf>

export const Event = z.discriminatedUnion('type', eventTypes.map(eventOf) as [OneEvent, ...OneEvent[]]).meta({
  id: 'Event',
  description: 'Distinguished by type. Later versions may have more types, which clients ignore.',
})

export type WireEvent<T extends EventType = EventType> = {
  id: string
  type: T
  ts: string
  session_id: string
  sequence: number
  context: EventContext
  data: EventData<T>
}

const MAX_TYPES = 25
const eventType = z.string().transform((type, context): EventType => {
  const known = eventTypes.find((candidate) => candidate === type)
  if (known !== undefined) return known
  context.issues.push({
    code: 'custom',
    input: type,
    message: `must be an event type, not "${type.slice(0, 64)}"${type.includes(',') ? '; repeat the key for several' : ''}`,
  })
  return z.NEVER
})

export const eventFilter = {
  types: repeated(eventType, MAX_TYPES).meta({
    type: 'array',
    items: { type: 'string', enum: eventTypes },
    maxItems: MAX_TYPES,
    description: 'Only these types; repeat the key.',
  }),
  exclude: repeated(eventType, MAX_TYPES).meta({
    type: 'array',
    items: { type: 'string', enum: eventTypes },
    maxItems: MAX_TYPES,
    description: 'Not these types; repeat the key. Applied after types.',
  }),
}
const since_id = z.string().optional().meta({ description: 'Exclusive: the id of the last event that the client has.' })
const ofTurn = TurnId.optional().meta({ description: 'Only the events of this turn, up to its end.' })

const params = z.object({ session_id: SessionId })

export const eventEndpoints = group(
  { tag: 'events', path: '/v1/sessions/{session_id}', access: 'member' },
  {
    list: {
      operationId: 'listEvents',
      method: 'GET',
      at: '/events',
      summary: "Lists a session's events, oldest first",
      params,
      query: z.object({
        since_id,
        turn_id: ofTurn,
        ...eventFilter,
        limit: z
          .string()
          .regex(/^\d{1,15}$/, { error: 'must be a whole number from 1 to 1000' })
          .transform(Number)
          .refine((limit) => limit >= 1, { error: 'must be a whole number from 1 to 1000' })
          .transform((limit) => Math.min(limit, 1000))
          .optional()
          .meta({ type: 'integer', minimum: 1, maximum: 1000, description: 'Without it, all events.' }),
      }),
      responses: { 200: listOf(Event) },
    },
    stream: {
      operationId: 'streamEvents',
      method: 'GET',
      at: '/sse',
      summary: "Streams a session's events: first the stored ones, then live",
      description:
        'Resumes after since_id, or after the Last-Event-ID header when since_id is absent. With turn_id it ends with the turn, ' +
        'and the answer is 204 when the turn has ended and has no further events.',
      params,
      query: z.object({ since_id, turn_id: ofTurn, ...eventFilter }),
      responses: { 204: null },
      streams: 'Server-Sent Events: connected, then every event by its type, disconnecting before the server closes',
    },
  },
)
