import type { LanguageModelV4CallOptions, LanguageModelV4FunctionTool } from '@ai-sdk/provider'
import { type Model, ModelError, type ModelRequest } from '../model.ts'
import { readAnswer } from './answer.ts'
import { notAStream, toModelError } from './call-failure.ts'
import { toPrompt, toTools } from './prompt.ts'
import type { Effort, ExplicitSettings, Protocol } from './protocol.ts'
import { readParts } from './streams/parts.ts'

/**
 * Creates a model from a protocol. The AI SDK makes the request and reads refusals, once a call; the stream of the
 * answer is read here, as that is done a thousand times a call. The SDK's `streamText` is not used: retries and the loop
 * over steps are the caller's.
 */
export function streamModel(
  createProtocol: (settings: ExplicitSettings) => Protocol,
  settings: ExplicitSettings,
): Model {
  const protocol = createProtocol({ ...settings, fetch: keepAnswers(settings.fetch) })
  return async function* answer(request) {
    request.signal.throwIfAborted()
    // Ends the request when the rest of the stream is not wanted.
    const ended = new AbortController()
    const signal = AbortSignal.any([request.signal, ended.signal])
    let hasAnswered = false
    try {
      const body = await openStream(protocol, toCall({ ...request, signal }, protocol, settings), settings)
      hasAnswered = true
      yield* readAnswer(readParts(body, protocol.readStream()), protocol, settings)
    } catch (error) {
      request.signal.throwIfAborted()
      throw Object.assign(toModelError(error, settings), { hasAnswered })
    } finally {
      ended.abort(OVER)
    }
  }
}

/** Internal reason, shared by all calls because each new error collects a stack. */
const OVER = new Error('the call is over')

const EFFORTS: readonly string[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] satisfies Effort[]
const isEffort = (effort: string): effort is Effort => EFFORTS.includes(effort)

function toCall(request: ModelRequest, protocol: Protocol, settings: ExplicitSettings): LanguageModelV4CallOptions {
  const { reasoningEffort: effort, tools, outputSchema, signal } = request
  const { source, isReasoning, providerName } = settings
  const limit = request.maxOutputTokens
  if (effort !== undefined && !isEffort(effort)) {
    throw new ModelError(`${providerName} does not know this reasoning effort.`, { retryable: false })
  }
  const call = {
    prompt: toPrompt(request, { source, images: protocol.images }),
    tools: toTools(tools),
    abortSignal: signal,
    ...(outputSchema === undefined ? {} : { responseFormat: toFormat(outputSchema) }),
    // Providers refuse a limit above the model's own.
    ...(limit === undefined ? {} : { maxOutputTokens: Math.min(limit, settings.maxOutputTokens ?? limit) }),
  }
  // A model that never thinks might refuse the option.
  return protocol.toCall(call, effort === 'none' && isReasoning === false ? undefined : effort)
}

/** The SDK's type of a schema is narrower than this service's, as for tools. */
const toFormat = (schema: Record<string, unknown>): LanguageModelV4CallOptions['responseFormat'] => ({
  type: 'json',
  name: 'output',
  schema: schema as LanguageModelV4FunctionTool['inputSchema'],
})

/** Brings a provider's answer past the SDK, which would read its stream. */
class Answered extends Error {
  readonly response: Response
  constructor(response: Response) {
    super()
    this.response = response
  }
}

const keepAnswers =
  (fetch: typeof globalThis.fetch): typeof globalThis.fetch =>
  async (input, init) => {
    const response = await fetch(input, init)
    if (response.ok) throw new Answered(response)
    return response
  }

/** Content types of answers that are not streams. Some servers send a stream under a wrong type. */
const NO_STREAM = /^\s*(text\/html|application\/json)\b/i

async function openStream(protocol: Protocol, call: LanguageModelV4CallOptions, settings: ExplicitSettings) {
  const { body, headers } = await sendRequest(protocol, call)
  const contentType = headers.get('content-type') ?? ''
  if (!NO_STREAM.test(contentType)) return body
  await body?.cancel()
  throw notAStream(contentType, settings)
}

async function sendRequest(protocol: Protocol, call: LanguageModelV4CallOptions): Promise<Response> {
  try {
    await protocol.sdkModel.doStream(call)
  } catch (error) {
    if (error instanceof Answered) return error.response
    throw error
  }
  throw new Error('the SDK has answered by itself')
}
