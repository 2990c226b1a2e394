import type { TokenUsage } from '../../../contract/kit/common.ts'
import type { Message } from '../../../contract/messages.ts'
import { elapsedMs } from '../../../lib/elapsed-ms.ts'
import { storableJson, storableText } from '../../../lib/postgres-text.ts'
import { sleep } from '../../../lib/sleep.ts'
import { loadImages } from '../../conversation/images.ts'
import type { ImageReader } from '../../conversation/load-image.ts'
import type { NewEvent } from '../../events/log/append.ts'
import { isQuestionId } from '../../events/log/steps.ts'
import { newUuid, toId } from '../../kit/ids.ts'
import { longestEdgeFor } from '../../models/llm/image-limits.ts'
import {
  answerTooLong,
  type GivenOutput,
  MAX_CALLS,
  ModelError,
  type ModelPart,
  type ModelToolCall,
  type ProviderData,
  tooManyCalls,
} from '../../models/llm/model.ts'
import { existingImages } from '../../session-data/images/existing.ts'
import { readImage } from '../../session-data/images/read.ts'
import { decryptMessages } from '../../tools/call-secrets/decrypt.ts'
import type { Deps } from '../deps.ts'
import { createDeltaWriter, type Delta } from './delta-writer.ts'
import type { ModelCall } from './model-call.ts'

/** A complete answer. `rest` holds the events for text that was not yet written when the model finished. */
export type Answer = {
  text: string
  thinking: string
  thinkingSignature: string | undefined
  toolCalls: ModelToolCall[]
  usage: TokenUsage
  finishReason: string
  responseId: string | undefined
  providerData: ProviderData | undefined
  /** See `ModelPart`. */
  output: GivenOutput | undefined
  firstPartMs: number | undefined
  rest: NewEvent[]
}

/**
 * Runs the model call and writes its text and thinking in batches as they arrive, once it has been recorded that the
 * step `started`. Rejects with `ModelError` for the provider's failures, with the signal's reason when aborted, and with
 * the error of a failed `write` or start.
 */
export async function streamAnswer(
  call: ModelCall,
  started: Promise<unknown>,
  append: (events: NewEvent[]) => Promise<void>,
): Promise<Answer> {
  const broken = new AbortController()
  const write = async (events: NewEvent[]) => {
    await started
    await append(events)
  }
  const turn_id = toId('turn', call.context.turnId)
  const thinkingDelta = ({ delta, accumulated }: Delta): NewEvent[] => [
    // Recorded once per step: the repeat that a later attempt sends is skipped.
    ...(delta === accumulated
      ? [{ type: 'reason.thinking.started' as const, data: { turn_id, model: call.model.name } }]
      : []),
    { type: 'reason.thinking.delta', data: { delta }, parts: { accumulated } },
  ]
  const textDelta = ({ delta, accumulated }: Delta): NewEvent[] => [
    { type: 'output.message.delta', data: { delta }, parts: { accumulated } },
  ]
  const stop = (error: unknown) => broken.abort(error)
  started.catch(stop)
  const thinking = createDeltaWriter(call.deps.deltaClock, (delta) => write(thinkingDelta(delta)), stop)
  const text = createDeltaWriter(call.deps.deltaClock, (delta) => write(textDelta(delta)), stop)
  const answer = emptyAnswer()
  const taken = callIdsOf(call.context.messages)

  const endThinking = async () => {
    const rest = await thinking.finish()
    return rest === undefined ? [] : thinkingDelta(rest)
  }
  try {
    for await (const part of modelParts(call, broken.signal)) {
      answer.firstPartMs ??= elapsedMs(call.startedAt)
      if (part.type === 'text' && answer.text === '' && answer.thinking !== '') {
        const rest = await endThinking()
        if (rest.length > 0) await write(rest)
      }
      if (part.type === 'text') text.push(part.delta)
      if (part.type === 'thinking') thinking.push(part.delta)
      collect(answer, part, taken)
    }
    answer.rest.push(...(await endThinking()))
  } catch (error) {
    if (error instanceof ModelError && answer.firstPartMs !== undefined) error.hasAnswered = true
    throw error
  } finally {
    const rest = await text.finish()
    if (rest !== undefined) answer.rest.push(...textDelta(rest))
    await thinking.finish()
  }
  broken.signal.throwIfAborted()
  if (answer.thinking !== '') {
    answer.rest.push({ type: 'reason.thinking.completed', data: { turn_id, thinking: answer.thinking } })
  }
  return answer
}

const emptyAnswer = (): Answer => ({
  text: '',
  thinking: '',
  thinkingSignature: undefined,
  toolCalls: [],
  usage: { input_tokens: 0, output_tokens: 0 },
  finishReason: 'unknown',
  responseId: undefined,
  providerData: undefined,
  output: undefined,
  firstPartMs: undefined,
  rest: [],
})

/** Returns the ids of the conversation's calls. Some models number their calls anew in each answer. */
const callIdsOf = (messages: Message[]): Set<string> =>
  new Set(messages.flatMap(({ content }) => content.flatMap((part) => (part.type === 'tool_call' ? [part.id] : []))))

/** Adds a part to the answer. `taken` gains the ids of its calls. */
function collect(answer: Answer, part: ModelPart, taken: Set<string>): void {
  if (part.type === 'text') answer.text += part.delta
  if (part.type === 'thinking') answer.thinking += part.delta
  if (part.type === 'thinking_signature') answer.thinkingSignature = storableText(part.signature)
  if (part.type === 'tool_call') {
    if (answer.toolCalls.length >= MAX_CALLS) throw tooManyCalls()
    answer.toolCalls.push(recordable(part.call, taken))
  }
  if (part.type === 'finish') {
    answer.usage = part.usage
    answer.finishReason = storableText(part.finishReason)
    answer.responseId = part.responseId && storableText(part.responseId)
    answer.providerData = part.providerData && storableJson(part.providerData)
    answer.output = part.output
  }
}

const MAX_TOOL_NAME = 128

/**
 * Makes a tool call recordable. Its id becomes unique in the conversation, so that a result sent twice never answers a
 * later call, and fit for a header. Its name and arguments become text that Postgres can store.
 */
function recordable(call: ModelToolCall, taken: Set<string>): ModelToolCall {
  const isFit = /^[\x21-\x7e]{1,128}$/.test(call.id) && !isQuestionId(call.id) && !taken.has(call.id)
  const id = isFit ? call.id : `call_${newUuid().replaceAll('-', '')}`
  taken.add(id)
  return {
    ...call,
    id,
    name: storableText(call.name).slice(0, MAX_TOOL_NAME).toWellFormed(),
    arguments: storableJson(call.arguments),
  }
}

/** Time for which Temporal is not told of a new turn, so that it takes none from the model's first part. */
const FIRST_PART_MS = 250

/** Streams the model's parts, with limits on its silence, on its total time and on the size of its answer. */
async function* modelParts(call: ModelCall, broken: AbortSignal): AsyncGenerator<ModelPart> {
  const { context, deps } = call
  const ended = AbortSignal.any([call.signal, broken])
  // Loaded before the limits begin: the model's silence counts from its request.
  const decrypted = await decryptMessages(deps, context.sessionId, call.modelInput.messages, context.secrets)
  const messages = await loadImages(deps, imageReader(call), decrypted.messages, ended)
  const limits = createLimits(deps.limits, context.caps.maxAnswerCharacters)
  const slowDown = createPace()
  const whole = createTextRepair()
  let hasAnswered = false
  const heardLate = setTimeout(() => call.attempt.early?.heard(), FIRST_PART_MS)
  try {
    const signal = AbortSignal.any([ended, limits.signal])
    const parts = call.ask({
      systemPrompt: call.systemPrompt,
      messages,
      providerData: context.providerData,
      tools: call.modelInput.tools,
      reasoningEffort: context.reasoningEffort,
      maxOutputTokens: call.maxOutputTokens,
      callIndex: context.earlierCalls + call.iteration - 1 - context.budgetQuestions,
      failures: context.attempts.failures,
      signal,
    })
    for await (const part of parts) {
      if (!hasAnswered) call.attempt.early?.heard()
      hasAnswered = true
      limits.heard(part)
      // Each await and each delegation would cost a part some microtasks.
      for (const repaired of whole(part)) yield repaired
      const pause = slowDown(sizeOf(part), signal)
      if (pause !== undefined) await pause
    }
  } catch (error) {
    if (!(error instanceof ModelError)) throw error
    // A provider may quote what it was sent, and a call that it is making.
    const isMaking = (hasAnswered || error.hasAnswered) && offersSecrets(call)
    throw decrypted.hasSecrets || isMaking ? error.inOwnWords() : error
  } finally {
    clearTimeout(heardLate)
    limits.clear()
  }
}

/** Whether a call that the model makes may have secrets. */
const offersSecrets = ({ context }: ModelCall): boolean =>
  [...context.toolset.values()].some(({ tool }) => tool?.secrets?.arguments?.length)

const imageReader = ({ deps, model, context: { organizationId } }: ModelCall): ImageReader => ({
  organizationId,
  maxEdge: longestEdgeFor(model.provider.type),
  existing: (ids) => existingImages(deps, organizationId, ids),
  read: async (id) => (await readImage(deps, organizationId, id))?.bytes,
})

function createLimits({ modelIdleTimeoutMs: idleMs, modelCallMs }: Deps['limits'], maxCharacters: number) {
  const over = new AbortController()
  const giveUp = (message: string, retryable: boolean) => () => over.abort(new ModelError(message, { retryable }))
  const silent = giveUp(`The model said nothing for ${Math.round(idleMs / 1000)} s.`, true)
  const endless = giveUp(`The model did not finish its answer within ${modelCallMs / 1000} s.`, false)
  let heardAt = performance.now()
  // One timer for the whole answer: most parts come long before it is due.
  const checkSilence = () => {
    const leftMs = heardAt + idleMs - performance.now()
    if (leftMs > 0) idle = setTimeout(checkSilence, leftMs)
    else silent()
  }
  let idle = setTimeout(checkSilence, idleMs)
  const whole = setTimeout(endless, modelCallMs)
  let characters = 0
  return {
    signal: over.signal,
    heard: (part: ModelPart) => {
      heardAt = performance.now()
      characters += sizeOf(part)
      if (characters > maxCharacters) throw answerTooLong()
    },
    clear: () => {
      clearTimeout(idle)
      clearTimeout(whole)
    },
  }
}

/** Characters of an answer that are taken in a second, far more than a model writes. */
const CHARACTERS_PER_SECOND = 512 * 1024

/**
 * Returns a function that returns a pause when characters come faster than `CHARACTERS_PER_SECOND`, with bursts of one
 * second's worth. Unread characters wait at the provider.
 */
function createPace(): (characters: number, signal: AbortSignal) => Promise<void> | undefined {
  let left = CHARACTERS_PER_SECOND
  let at = performance.now()
  return (characters, signal) => {
    const now = performance.now()
    left = Math.min(CHARACTERS_PER_SECOND, left + ((now - at) * CHARACTERS_PER_SECOND) / 1000) - characters
    at = now
    return left < 0 ? sleep((-left * 1000) / CHARACTERS_PER_SECOND, signal) : undefined
  }
}

function sizeOf(part: ModelPart): number {
  if (part.type === 'text' || part.type === 'thinking') return part.delta.length
  if (part.type === 'progress') return part.length
  if (part.type === 'finish') return part.providerData === undefined ? 0 : JSON.stringify(part.providerData).length
  return part.type === 'tool_call' ? JSON.stringify(part.call.arguments).length : 0
}

/** Makes streamed text storable, and rejoins a surrogate pair that a provider has split between two parts. */
function createTextRepair(): (part: ModelPart) => ModelPart[] {
  let held: { type: 'text' | 'thinking'; half: string } | undefined
  return (part) => {
    const parts: ModelPart[] = []
    const streams = part.type === 'text' || part.type === 'thinking'
    if (held !== undefined && held.type !== part.type) parts.push({ type: held.type, delta: storableText(held.half) })
    if (!streams) {
      held = undefined
      return [...parts, part]
    }
    const text = (held?.type === part.type ? held.half : '') + part.delta
    const cut = /[\ud800-\udbff]$/.test(text)
    held = cut ? { type: part.type, half: text.slice(-1) } : undefined
    const ready = cut ? text.slice(0, -1) : text
    return ready === '' ? parts : [...parts, { ...part, delta: storableText(ready) }]
  }
}
