import { APICallError, type LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { type Model, ModelError, type ModelRequest } from '../model.ts'
import { readAnswer } from './answer.ts'
import { notAStream, toModelError } from './call-failure.ts'
import { toPrompt, toTools } from './prompt.ts'
import type { Effort, ExplicitSettings, Protocol } from './protocol.ts'

/**
 * Creates a model from a protocol of the AI SDK. Uses the SDK provider's own `doStream`, not `streamText`. The latter
 * adds retries, a loop over steps and console output, which the caller handles itself. It also hides the provider's own
 * finish reason, without which a stream that was cut off looks complete.
 */
export function streamModel(protocol: Protocol, settings: ExplicitSettings): Model {
  return async function* answer(request) {
    request.signal.throwIfAborted()
    // However the call ends, nothing of it goes on: after an error the SDK would read the rest of the stream.
    const ended = new AbortController()
    const signal = AbortSignal.any([request.signal, ended.signal])
    let hasAnswered = false
    try {
      const stream = await openStream(protocol, toCall({ ...request, signal }, protocol, settings), settings)
      hasAnswered = true
      yield* readAnswer(stream, protocol, settings)
    } catch (error) {
      request.signal.throwIfAborted()
      throw Object.assign(toModelError(error, settings), { hasAnswered: hasAnswered || isOfStream(error) })
    } finally {
      ended.abort(OVER)
    }
  }
}

/** Internal reason, shared by all calls because each new error collects a stack. */
const OVER = new Error('the call is over')

/** Whether it is an error in the first event of a stream, for which the SDK looks before it gives that out. */
const isOfStream = (error: unknown): boolean =>
  APICallError.isInstance(error) && /event-stream/i.test(error.responseHeaders?.['content-type'] ?? '')

const EFFORTS: readonly string[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] satisfies Effort[]
const isEffort = (effort: string): effort is Effort => EFFORTS.includes(effort)

function toCall(request: ModelRequest, protocol: Protocol, settings: ExplicitSettings): LanguageModelV4CallOptions {
  const { reasoningEffort: effort, tools, signal } = request
  const { source, isReasoning, providerName } = settings
  if (effort !== undefined && !isEffort(effort)) {
    throw new ModelError(`${providerName} does not know this reasoning effort.`, { retryable: false })
  }
  const call = {
    prompt: toPrompt(request, { source, images: protocol.images }),
    tools: toTools(tools),
    abortSignal: signal,
  }
  // A model that never thinks need not be told so, and might refuse it.
  return protocol.toCall(call, effort === 'none' && isReasoning === false ? undefined : effort)
}

/** Types of answers that are no stream. Some servers send a stream under another type than its own. */
const NO_STREAM = /^\s*(text\/html|application\/json)\b/i

async function openStream(protocol: Protocol, call: LanguageModelV4CallOptions, settings: ExplicitSettings) {
  const { stream, response } = await protocol.sdkModel.doStream(call)
  const contentType = response?.headers?.['content-type'] ?? ''
  if (NO_STREAM.test(contentType)) {
    await stream.cancel()
    throw notAStream(contentType, settings)
  }
  return stream
}
