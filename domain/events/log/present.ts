import { hash } from 'node:crypto'
import type { EventContext, EventType, WireEvent } from '../../../contract/events.ts'
import type { ContentPart, Message } from '../../../contract/messages.ts'
import { toId } from '../../kit/ids.ts'
import type { EventIds } from './event-id.ts'
import { actStep, callStep, isSteerStep, ownStep, parseStep } from './steps.ts'

/** Event as stored. `data` lacks the parts that readers compute. */
export type StoredEvent = {
  sessionId: string
  sequence: number
  type: EventType
  ts: Date
  turnId: string
  step: string
  execId: string | null
  data: Record<string, unknown>
}

/** Parts of an event that its stored data omits, because they would repeat the conversation with every event. */
export type ReadParts = {
  /** Text of the message up to and including this delta. */
  accumulated?: string | undefined
  /** Input of a model call. A reader adds it to the line instead. */
  messages?: Message[] | undefined
}

/** Dependencies of presentEvent: the codec of event ids, and the last context. */
export type Presenting = { ids: EventIds; lastContext: ContextMemo }

export function presentEvent({ ids, lastContext }: Presenting, event: StoredEvent, parts: ReadParts): WireEvent {
  return {
    id: ids.encode(event.sessionId, event.sequence, event.ts.getTime()),
    type: event.type,
    ts: event.ts.toISOString(),
    session_id: toId('session', event.sessionId),
    sequence: event.sequence,
    context: presentContext(lastContext, event),
    // Only this service creates events, with the data of their type.
    data: presentData(event, parts) as WireEvent['data'],
  }
}

function presentData(event: StoredEvent, parts: ReadParts): unknown {
  switch (event.type) {
    case 'input.message': {
      const { compaction: _read, ...data } = event.data
      return { ...data, message: presentMessage(event) }
    }
    case 'output.message.completed': {
      // Only for the answer's own provider, and for recipients of secrets.
      const { provider_data: _provider, secret_tokens: _secrets, steered_through: _read, ...data } = event.data
      return { ...data, message: presentMessage(event) }
    }
    case 'tool.completed': {
      const { secret_tokens: _stored, ...data } = event.data
      return data
    }
    case 'act.started': {
      // Only for the calls, which compare them.
      const { versions: _versions, approved_as: _approved, ...data } = event.data
      return data
    }
    case 'tool.call_requested': {
      // Only for the call that asks.
      const { asked: _asked, ...data } = event.data
      return data
    }
    case 'output.message.delta':
    case 'reason.thinking.delta':
      return { turn_id: toId('turn', event.turnId), ...event.data, accumulated: parts.accumulated ?? '' }
    case 'turn.completed': {
      const { steered_through: _read, ...data } = event.data
      return data
    }
    case 'llm.generation': {
      const { thresholds: _stored, steered_through: _read, ...data } = event.data
      return parts.messages === undefined ? data : { ...data, messages: parts.messages }
    }
    default:
      return event.data
  }
}

/** Types of events with one message each. Messages are a view of events. */
export const messageTypes = ['input.message', 'output.message.completed', 'tool.completed'] as const

/** Fields of a message that come from its event. */
type Position = 'session_id' | 'sequence' | 'created_at' | 'input_message_id' | 'turn_id'

export function presentMessage(event: StoredEvent): Message {
  const position = {
    session_id: toId('session', event.sessionId),
    sequence: event.sequence,
    created_at: event.ts.toISOString(),
  }
  const stored = event.data.message as Omit<Message, Position>
  if (event.type === 'input.message') {
    return { ...stored, ...(isSteerStep(event.step) ? { turn_id: toId('turn', event.turnId) } : {}), ...position }
  }
  const answered = { input_message_id: toId('message', event.turnId), turn_id: toId('turn', event.turnId) }
  return { ...(event.type === 'tool.completed' ? presentToolResult(event) : stored), ...answered, ...position }
}

function presentToolResult(event: StoredEvent): Omit<Message, Position> {
  const { tool_call_id, message_id, result, error } = event.data as {
    tool_call_id: string
    message_id?: string
    result?: ContentPart[] | null
    error?: string | null
  }
  const value = result?.find((part) => part.type === 'text')
  const rest = result?.filter((part) => part !== value && (part.type === 'image' || part.type === 'text')) ?? []
  return {
    id: message_id ?? toId('message', spanUuid(event.turnId, event.step)),
    role: 'tool_result',
    content: [
      { type: 'tool_result', tool_call_id, result: value === undefined ? null : parseJson(value.text), error },
      // Images, and a text instead of omitted images.
      ...rest,
    ],
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/**
 * Returns the context of an event: turn, step and span. It is empty for `input.message`, which precedes its turn, unless
 * the message joined a running one.
 */
function presentContext(memo: ContextMemo, event: StoredEvent): EventContext {
  if (event.type === 'input.message' && event.step === '') return {}
  const { turnId, step, execId } = event
  const kind = spanKind(event.type)
  const { last } = memo
  if (turnId === last?.turnId && step === last.step && execId === last.execId && kind === last.kind) {
    return last.context
  }
  const context = makeContext(event, kind)
  memo.last = { turnId, step, execId, kind, context }
  return context
}

type SpanKind = 'turn' | 'step' | 'call'
const spanKind = (type: EventType): SpanKind =>
  type === 'llm.generation' ? 'call' : type.startsWith('turn.') ? 'turn' : 'step'

type SpanContext = Pick<StoredEvent, 'turnId' | 'step' | 'execId'> & { kind: SpanKind; context: EventContext }

/** Last context. Most events share the previous event's context, and making one takes several digests. */
export type ContextMemo = { last?: SpanContext }

function makeContext(event: StoredEvent, kind: SpanKind): EventContext {
  const turn = toId('turn', event.turnId)
  const context: EventContext = { turn_id: turn, input_message_id: toId('message', event.turnId), trace_id: turn }
  if (kind === 'turn') return { ...context, span_id: span(event.turnId, '') }
  // Events of the session itself have no span.
  if (event.step === '') return context
  const own = span(event.turnId, ownStep(event.step))
  return {
    ...context,
    ...(event.execId === null ? {} : { exec_id: toId('exec', event.execId) }),
    span_id: kind === 'call' ? span(event.turnId, `${event.step}/llm`) : own,
    parent_span_id: kind === 'call' ? own : parentSpan(event),
  }
}

/** Returns the parent in turn -> reason or act -> llm or tool -> question. */
function parentSpan(event: StoredEvent): string {
  const step = parseStep(ownStep(event.step))
  if (step?.kind === 'question') return span(event.turnId, callStep(step.iteration, step.callId))
  return span(event.turnId, step?.kind === 'tool' ? actStep(step.iteration) : '')
}

/** Returns a span id of 16 hex digits, as in OpenTelemetry. It is the same for every attempt of a step. */
export const span = (turnId: string, step: string): string => digest(turnId, step).slice(0, 16)
const spanUuid = (turnId: string, step: string): string => digest(turnId, step).slice(0, 32)
const digest = (turnId: string, step: string): string => hash('sha256', `${turnId}/${step}`)
