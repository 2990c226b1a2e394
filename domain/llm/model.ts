import type { Message, TokenUsage } from '../../contract/messages.ts'

/** A tool as a model sees it; `parameters` is a JSON Schema object. */
export type ToolSpec = { name: string; description: string; parameters: Record<string, unknown> }

/** What one model call needs. `messages` are oldest first and hold no system message. */
export type ModelRequest = {
  systemPrompt: string
  messages: Message[]
  tools: ToolSpec[]
  reasoningEffort?: string | undefined
  /** How many model calls this session has made before this one; a retry of a call keeps its number. */
  callIndex: number
  /** How often the provider has already failed this call. */
  failures: number
  signal: AbortSignal
}

/** `arguments` is the parsed object, or `argumentsError` says why the model's text was none. */
export type ModelToolCall = { id: string; name: string; arguments: Record<string, unknown>; argumentsError?: string }

/** A model's answer in the order it arrives. `finish` is always the last part. */
export type ModelPart =
  | { type: 'text'; delta: string }
  | { type: 'thinking'; delta: string }
  | { type: 'thinking_signature'; signature: string }
  | { type: 'tool_call'; call: ModelToolCall }
  | { type: 'finish'; usage: TokenUsage; finishReason: string; responseId?: string | undefined }

/** Streams one answer. Throws `ModelError` for everything the provider does wrong. */
export type Model = (request: ModelRequest) => AsyncIterable<ModelPart>

/**
 * A provider's failure. `message` is fit for a user: no key, no URL with credentials, no stack.
 * `retryable`: 408, 409, 429, 5xx and broken connections. `retryAfterMs`: from the Retry-After header.
 */
export class ModelError extends Error {
  override name = 'ModelError'
  readonly status: number | undefined
  readonly retryable: boolean
  readonly retryAfterMs: number | undefined

  constructor(
    message: string,
    options: { status?: number | undefined; retryable: boolean; retryAfterMs?: number | undefined; cause?: unknown },
  ) {
    super(message, { cause: options.cause })
    this.status = options.status
    this.retryable = options.retryable
    this.retryAfterMs = options.retryAfterMs
  }
}
