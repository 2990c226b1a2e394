import { APICallError, type LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { type Model, ModelError, type ModelRequest } from '../model.ts'
import { readAnswer } from './answer.ts'
import { notAStream, toModelError } from './call-failure.ts'
import { toPrompt, toTools } from './prompt.ts'
import type { Effort, ExplicitSettings, Protocol } from './protocol.ts'

/**
 * Creates a model from a protocol of the AI SDK. Uses the SDK provider's own `doStream`, not `streamText`, which adds
 * retries, a loop over steps and console output, all handled by the caller. `streamText` also hides the provider's own
 * finish reason, without which a cut-off stream looks complete.
 */
export function streamModel(protocol: Protocol, settings: ExplicitSettings): Model {
  return async function* answer(request) {
    request.signal.throwIfAborted()
    // Stops the SDK, which would read the rest of the stream after an error.
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

/** Whether the error comes from a stream's first event, which the SDK checks before it returns the stream. */
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
  // A model that never thinks might refuse the option.
  return protocol.toCall(call, effort === 'none' && isReasoning === false ? undefined : effort)
}

/** Content types of answers that are not streams. Some servers send a stream under a wrong type. */
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
