import type { Message, TokenUsage } from '../../../contract/messages.ts'

/** A tool as presented to a model. `parameters` is a JSON Schema object. */
export type ToolSpec = { name: string; description: string; parameters: Record<string, unknown> }

/**
 * Data that a provider needs back, unchanged, with its own answer: signatures of thinking and of tool calls, encrypted
 * items. Only the adapter that made the JSON understands it. `source` names provider and model, and no other receives
 * it. Stored with the answer's event and never presented.
 */
export type ProviderData = { source: string; blocks: unknown[] }

/**
 * The input of one model call. `messages` are oldest first and contain no system message. Their images are data
 * (`base64` with `media_type`); no adapter fetches a URL.
 */
export type ModelRequest = {
  systemPrompt: string
  messages: Message[]
  /** Data of earlier answers, by the id of their message. */
  providerData?: ReadonlyMap<string, ProviderData>
  tools: ToolSpec[]
  /** Schema that the provider makes the answer's text fit. Other calls and calls of tools are as without. */
  outputSchema?: Record<string, unknown> | undefined
  reasoningEffort?: string | undefined
  /**
   * Limit on the tokens of the answer, thinking included, at least `MIN_OUTPUT_TOKENS`. An answer that reaches it ends
   * with the reason `length`. Without it, or above it, the model's own limit holds.
   */
  maxOutputTokens?: number | undefined
  /** Number of model calls that the session made before this one. A retry of a call keeps its number. */
  callIndex: number
  /** Number of previous failures of this call. */
  failures: number
  signal: AbortSignal
}

/** A tool call of a model. `arguments` is the parsed object; `argumentsError` says why the model's text was not one. */
export type ModelToolCall = { id: string; name: string; arguments: Record<string, unknown>; argumentsError?: string }

/** A part of a model's answer. Parts come in the order in which they arrive; `finish` is always the last. */
export type ModelPart =
  | { type: 'text'; delta: string }
  | { type: 'thinking'; delta: string }
  | { type: 'thinking_signature'; signature: string }
  | { type: 'tool_call'; call: ModelToolCall }
  /** Characters of a part that is only emitted whole, such as a tool call. */
  | { type: 'progress'; length: number }
  | {
      type: 'finish'
      usage: TokenUsage
      finishReason: string
      responseId?: string | undefined
      providerData?: ProviderData | undefined
      /** The answer's value as JSON, or why it has none, if that is not its text as a whole. See `withOutput`. */
      output?: GivenOutput | undefined
    }

export type GivenOutput = { text: string } | { problem: string }

/** Smallest limit on output tokens that all protocols accept. */
export const MIN_OUTPUT_TOKENS = 16

/** Maximum number of calls in an answer, the providers' own limit. An answer with more is malformed. */
export const MAX_CALLS = 128

/** Code of a turn that fails because of its model's answer. */
export type AnswerFailure = 'answer_too_long' | 'too_many_tool_calls'

/** Streams one answer. Throws `ModelError` for every failure of the provider. */
export type Model = (request: ModelRequest) => AsyncIterable<ModelPart>

/**
 * A failure of the provider. `message` is safe to show to a user: no key, no URL with credentials, no stack.
 * `retryable` is true for 408, 409, 429, 5xx and broken connections. `retryAfterMs` comes from the Retry-After header.
 */
export class ModelError extends Error {
  override name = 'ModelError'
  readonly status: number | undefined
  readonly retryable: boolean
  readonly retryAfterMs: number | undefined

  /** Problem of a given answer; undefined if the provider failed to answer. */
  readonly code: AnswerFailure | undefined

  /** Sentence without the provider's own words, if `message` has some. */
  readonly ownWords: string | undefined
  /** Whether the provider had begun to answer, so that its words may be about the answer. */
  hasAnswered = false

  constructor(
    message: string,
    options: {
      status?: number | undefined
      retryable: boolean
      retryAfterMs?: number | undefined
      ownWords?: string
      code?: AnswerFailure
      cause?: unknown
    },
  ) {
    super(message, { cause: options.cause })
    this.status = options.status
    this.retryable = options.retryable
    this.retryAfterMs = options.retryAfterMs
    this.ownWords = options.ownWords
    this.code = options.code
  }

  /** Returns the same failure without the provider's own words, which may repeat the call's secrets. */
  inOwnWords(): ModelError {
    if (this.ownWords === undefined) return this
    const { status, retryable, retryAfterMs } = this
    const message = `${this.ownWords} The reason is left out, because it may repeat secret values.`
    const own = new ModelError(message, { status, retryable, retryAfterMs, ...(this.code && { code: this.code }) })
    own.hasAnswered = this.hasAnswered
    return own
  }
}

export const answerTooLong = (): ModelError =>
  new ModelError('The answer of the model is too long.', { retryable: false, code: 'answer_too_long' })

export const tooManyCalls = (): ModelError =>
  new ModelError(`The answer of the model calls more than ${MAX_CALLS} tools.`, {
    retryable: false,
    code: 'too_many_tool_calls',
  })
