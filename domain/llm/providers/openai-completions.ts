import { createOpenAI } from '@ai-sdk/openai'
import { z } from 'zod'
import { type Model, ModelError, type ModelPart, type ModelRequest, type ModelToolCall } from '../model.ts'
import { parseToolArguments } from '../tool-arguments.ts'
import { notAStream, type Provider, toModelError, toStreamedError } from './openai-failure.ts'
import { type ChatCall, type ChatModel, type ChatPart, toPrompt, toTools } from './openai-prompt.ts'
import { repairStream } from './openai-repair.ts'

export type OpenaiCompletionsOptions = {
  baseUrl: string
  apiKey: string
  model: string
  /** The provider's name in error messages. */
  providerName?: string
}

/**
 * Creates a model for the Chat Completions protocol, at OpenAI or any compatible server. Uses the AI SDK provider's own
 * `doStream`, not `streamText`. The latter adds retries, a loop over steps and console output, which the caller handles
 * itself. It also hides the provider's own finish reason, without which a stream that was cut off looks complete.
 */
export function openaiCompletions(options: OpenaiCompletionsOptions): Model {
  const { baseUrl, apiKey, model, providerName = 'OpenAI' } = options
  const provider = { providerName, apiKey, baseUrl }
  const chat = createOpenAI({ baseURL: baseUrl, apiKey, fetch: fetchRepaired }).chat(model)
  return async function* answer(request) {
    request.signal.throwIfAborted()
    const call = toCall(request)
    try {
      yield* streamAnswer(chat, call, provider)
    } catch (error) {
      request.signal.throwIfAborted()
      throw toModelError(error, provider)
    }
  }
}

const fetchRepaired: typeof fetch = async (input, init) => {
  const response = await fetch(input, init)
  return response.ok && response.body !== null ? new Response(repairStream(response.body), response) : response
}

/** Types of answers that are no stream. Some servers send a stream under another type than its own. */
const NO_STREAM = /^\s*(text\/html|application\/json)\b/i

async function* streamAnswer(chat: ChatModel, call: ChatCall, provider: Provider): AsyncIterable<ModelPart> {
  const { stream, response } = await chat.doStream(call)
  const contentType = response?.headers?.['content-type'] ?? ''
  if (NO_STREAM.test(contentType)) {
    await stream.cancel()
    throw notAStream(contentType, provider)
  }
  const calls: ModelToolCall[] = []
  let responseId: string | undefined
  for await (const part of stream) {
    if (part.type === 'error') throw toStreamedError(part.error, provider)
    if (part.type === 'response-metadata') responseId = part.id
    // Held back until the finish: the SDK also reports a partial call that a cut-off stream left behind.
    if (part.type === 'tool-call') calls.push(toToolCall(part))
    if (part.type === 'finish') {
      const finish = toFinish(part, provider)
      for (const call of calls) yield { type: 'tool_call', call }
      yield { ...finish, responseId }
      return
    }
    yield* toDeltas(part)
  }
  throw cutOff(provider)
}

function toCall(request: ModelRequest): ChatCall {
  const { systemPrompt, messages, tools, reasoningEffort, signal } = request
  return {
    prompt: toPrompt(systemPrompt, messages),
    tools: toTools(tools),
    abortSignal: signal,
    // The only access to the thinking of compatible servers, see toThinking.
    includeRawChunks: true,
    ...(reasoningEffort === undefined ? {} : { providerOptions: { openai: { reasoningEffort } } }),
  }
}

function* toDeltas(part: ChatPart): Iterable<ModelPart> {
  if (part.type === 'text-delta' && part.delta !== '') yield { type: 'text', delta: part.delta }
  if (part.type === 'reasoning-delta' && part.delta !== '') yield { type: 'thinking', delta: part.delta }
  if (part.type === 'raw') {
    const delta = toThinking(part.rawValue)
    if (delta !== '') yield { type: 'thinking', delta }
  }
}

const RawChunk = z.object({
  choices: z.array(
    z.object({
      delta: z.object({ reasoning_content: z.string().nullish(), reasoning: z.string().nullish() }).nullish(),
    }),
  ),
})

/**
 * Reads the thinking of a raw chunk. OpenAI never streams thinking over this protocol, so the SDK drops the fields that
 * other servers use: `reasoning_content` (DeepSeek, vLLM, llama.cpp) or `reasoning` (OpenRouter, Ollama). The SDK holds
 * everything back until the first text or call, so all thinking arrives at once, just before it.
 */
function toThinking(rawChunk: unknown): string {
  const parsed = RawChunk.safeParse(rawChunk)
  const delta = parsed.data?.choices[0]?.delta
  return delta?.reasoning_content ?? delta?.reasoning ?? ''
}

function toToolCall(part: Extract<ChatPart, { type: 'tool-call' }>): ModelToolCall {
  return { id: part.toolCallId, name: part.toolName, ...parseToolArguments(part.input) }
}

type FinishPart = Extract<ModelPart, { type: 'finish' }>

function toFinish(part: Extract<ChatPart, { type: 'finish' }>, provider: Provider): FinishPart {
  // The SDK ends every stream with a finish part. Only a stream that the provider finished has a raw reason.
  if (part.finishReason.raw === undefined) throw cutOff(provider)
  const { inputTokens, outputTokens } = part.usage
  return {
    type: 'finish',
    usage: {
      input_tokens: toCount(inputTokens.total) ?? 0,
      output_tokens: toCount(outputTokens.total) ?? 0,
      cache_read_tokens: toCount(inputTokens.cacheRead),
      cache_creation_tokens: toCount(inputTokens.cacheWrite),
    },
    finishReason: part.finishReason.raw,
  }
}

/** Far more tokens than one call can use. Sums of such counts still are exact numbers. */
const MAX_TOKENS = 1_000_000_000

/**
 * Makes a whole number within limits of what a provider says. Some report more tokens from the cache than the prompt
 * has, so that the rest is negative.
 */
const toCount = (tokens: number | undefined): number | undefined =>
  tokens === undefined || Number.isNaN(tokens) ? undefined : Math.min(MAX_TOKENS, Math.max(0, Math.round(tokens)))

function cutOff({ providerName }: Provider): ModelError {
  return new ModelError(`${providerName} ended its answer before it was finished.`, { retryable: true })
}
