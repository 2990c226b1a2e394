import type { TokenUsage } from '../../contract/kit/common.ts'
import type { Message } from '../../contract/messages.ts'

/** Turn to which spans belong. `traceparent`: place of its message in a trace, null if it has none. Plain UUIDs. */
export type TracedTurn = { turnId: string; sessionId: string; traceparent: string | null }

/** One attempt at a model call. `provider` is its provider's type. The content is read only if operators want it. */
export type TracedModelCall = {
  turn: TracedTurn
  iteration: number
  provider: string
  model: string
  systemPrompt: string
  messages: Message[]
}

/** Answer of a model. `firstPartMs` is the time from the request to its first part. */
export type TracedAnswer = {
  text: string
  toolCalls: { id: string; name: string; arguments: Record<string, unknown> }[]
  usage: TokenUsage
  finishReason: string
  responseId: string | undefined
  firstPartMs: number | undefined
}

/** One attempt at a tool call. The arguments have no secrets, and are read only if operators want them. */
export type TracedToolCall = {
  turn: TracedTurn
  iteration: number
  name: string
  callId: string
  arguments: Record<string, unknown>
}

/** `errorType` is a word of a closed set; undefined for a success. */
export type TracedResult = { errorType: string | undefined; content?: unknown }

/** Span of a request that this service answers. */
export type RequestSpan = {
  /** Runs the work of the request in the span. */
  within<T>(work: () => T): T
  /** Ends the span. `route` is the pattern of the path, null if there is none. */
  end(answer: { route: string | null; status: number }): void
}

/** Spans of what this process does, for its operators' collector. Nothing here ever fails or waits for the collector. */
export type Tracing = {
  /** Returns the place of the current span as a W3C traceparent, to send or to keep. Undefined outside of spans. */
  traceparent(): string | undefined
  /** Begins the span of a request, below the place that its `traceparent` names, if that is valid. */
  receive(request: { method: string; traceparent: string; requestId: string }): RequestSpan | undefined
  modelCall<T extends TracedAnswer>(call: TracedModelCall, work: () => Promise<T>): Promise<T>
  toolCall<T>(call: TracedToolCall, work: () => Promise<T>, resultOf: (done: T) => TracedResult): Promise<T>
  /** Runs a request of a schedule, which belongs to no turn. */
  send<T extends { status: number }>(request: { method: string }, work: () => Promise<T>): Promise<T>
  /** Runs work that does not belong to the current span. */
  apart<T>(work: () => T): T
  /** Emits the span of a turn if one of the events, just recorded, has ended it. */
  recorded(turnId: string, events: readonly { type: string }[]): void
}

/** Used when nobody traces this process. */
export const NO_TRACING: Tracing = {
  traceparent: () => undefined,
  receive: () => undefined,
  modelCall: (_, work) => work(),
  toolCall: (_, work) => work(),
  send: (_, work) => work(),
  apart: (work) => work(),
  recorded: () => {},
}
