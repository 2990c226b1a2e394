import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { ModelPart, ModelToolCall } from '../model.ts'
import { parseToolArguments } from '../tool-arguments.ts'
import { type BlockCollector, createBlockCollector } from './block-collector.ts'
import { cutOff, toStreamedError } from './call-failure.ts'
import { refuseFailedFinish, toFinish } from './finish.ts'
import type { ExplicitSettings, Protocol } from './protocol.ts'

/** Converts the parts of one answer, up to its finish. Throws if the stream ends without one. */
export async function* readAnswer(
  stream: AsyncIterable<LanguageModelV4StreamPart>,
  protocol: Protocol,
  settings: ExplicitSettings,
): AsyncIterable<ModelPart> {
  const collector = createBlockCollector(protocol)
  // Held back until the finish: the SDK also reports a partial call that a cut-off stream left behind.
  const calls: ModelToolCall[] = []
  let responseId: string | undefined
  let hasText = false
  for await (const part of stream) {
    if (part.type === 'error') throw toStreamedError(part.error, settings)
    if (part.type === 'response-metadata') responseId = part.id
    if (part.type === 'text-delta' && part.delta !== '') hasText = true
    if (part.type === 'tool-call') calls.push(toToolCall(part))
    if (part.type === 'finish') {
      refuseFailedFinish(part, { isEmpty: !hasText && calls.length === 0 }, settings)
      yield* toSignature(collector)
      for (const call of calls) yield { type: 'tool_call', call }
      yield { ...toFinish(part), responseId, providerData: collector.toData(settings.source) }
      return
    }
    yield* toDeltas(part, collector, protocol)
  }
  throw cutOff(settings)
}

function* toDeltas(
  part: LanguageModelV4StreamPart,
  collector: BlockCollector,
  { readThinking }: Protocol,
): Iterable<ModelPart> {
  const thinking = collector.add(part) + (part.type === 'raw' ? (readThinking?.(part.rawValue) ?? '') : '')
  if (thinking !== '') yield { type: 'thinking', delta: thinking }
  if (part.type === 'text-delta' && part.delta !== '') yield { type: 'text', delta: part.delta }
}

function* toSignature(collector: BlockCollector): Iterable<ModelPart> {
  const signature = collector.signature()
  if (signature !== undefined) yield { type: 'thinking_signature', signature }
}

function toToolCall(part: Extract<LanguageModelV4StreamPart, { type: 'tool-call' }>): ModelToolCall {
  return { id: part.toolCallId, name: part.toolName, ...parseToolArguments(part.input) }
}
