import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { MAX_CALLS, type ModelPart, type ModelToolCall, tooManyCalls } from '../model.ts'
import { clean } from '../provider-failure.ts'
import { parseToolArguments } from '../tool-arguments.ts'
import { cutOff, toStreamedError } from './call-failure.ts'
import { type Collected, collectPart, lastSignature, nothingCollected } from './collect-blocks.ts'
import { refuseFailedFinish, toFinish } from './finish.ts'
import type { ExplicitSettings, Protocol } from './protocol.ts'
import { toProviderData } from './provider-data.ts'

/** Parts of an answer that a user sees. */
const BEGINNINGS = new Set<LanguageModelV4StreamPart['type']>([
  'text-delta',
  'reasoning-delta',
  'tool-input-delta',
  'tool-call',
])

/** Converts the parts of one answer, up to its finish. Throws if the stream ends without one. */
export async function* readAnswer(
  stream: AsyncIterable<LanguageModelV4StreamPart>,
  protocol: Protocol,
  settings: ExplicitSettings,
): AsyncIterable<ModelPart> {
  const collected = nothingCollected()
  // Kept until the finish: a cut-off stream may end with a partial call.
  const calls: ModelToolCall[] = []
  let responseId: string | undefined
  let hasText = false
  let hasBegun = false
  for await (const part of stream) {
    if (part.type === 'error') throw toStreamedError(part.error, settings, hasBegun)
    if (part.type === 'response-metadata') responseId = part.id && clean(part.id, settings.apiKey)
    if (part.type === 'text-delta' && part.delta !== '') hasText = true
    hasBegun ||= BEGINNINGS.has(part.type)
    if (part.type === 'tool-call') {
      if (calls.length >= MAX_CALLS) throw tooManyCalls()
      calls.push(toToolCall(part))
    }
    if (part.type === 'finish') {
      refuseFailedFinish(part, { isEmpty: !hasText && calls.length === 0 }, settings)
      const providerData = toProviderData(settings.source, collected.blocks)
      if (providerData !== undefined) yield* toSignature(collected, protocol)
      for (const call of calls) yield { type: 'tool_call', call }
      yield { ...toFinish(part, settings), responseId, providerData }
      return
    }
    for (const delta of toDeltas(part, collected, protocol)) yield delta
  }
  throw cutOff(settings)
}

function* toDeltas(part: LanguageModelV4StreamPart, collected: Collected, protocol: Protocol): Iterable<ModelPart> {
  const thinking = collectPart(collected, part, protocol)
  if (thinking !== '') yield { type: 'thinking', delta: thinking }
  if (part.type === 'tool-input-delta') yield { type: 'progress', length: part.delta.length }
  if (part.type === 'text-delta' && part.delta !== '') yield { type: 'text', delta: part.delta }
}

function* toSignature(collected: Collected, protocol: Protocol): Iterable<ModelPart> {
  const signature = lastSignature(collected, protocol)
  if (signature !== undefined) yield { type: 'thinking_signature', signature }
}

function toToolCall(part: Extract<LanguageModelV4StreamPart, { type: 'tool-call' }>): ModelToolCall {
  return { id: part.toolCallId, name: part.toolName, ...parseToolArguments(part.input) }
}
