import type { ContentPart, Message } from '../../../../contract/messages.ts'
import { imageSizeOf } from '../../../../lib/image-size.ts'
import type { Model, ModelPart, ModelRequest } from '../model.ts'
import { delay, paced, splitIntoTokens } from '../pacing.ts'
import { estimateInputTokens, estimateTokens } from '../token-estimate.ts'
import { streamScript } from './llmsim-script.ts'

const MAX_LOREM_TOKENS = 100_000
const LOREM_INTERVAL_MS = 5
/** Latency of a medium-sized hosted model under good conditions. */
const LATENCY = { delayMs: 400, intervalMs: 20 }

const DEFAULT_ANSWER = splitIntoTokens(
  'Hello! I am a simulated model, so this short answer is always the same and needs no network at all.',
)
const LATENCY_ANSWER = splitIntoTokens(
  'This is the answer of a simulated model that takes its time. The first token comes after four tenths of a second, ' +
    'and the others follow at fifty a second, which is about what a hosted model of middle size does.',
)
const LOREM =
  'Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna aliqua.'.split(
    ' ',
  )

type Answer = { tokens: Iterable<string>; outputTokens: number; delayMs?: number; intervalMs?: number }

/**
 * Returns a simulated model, which runs in process and without a network: `llmsim-default`, `llmsim-latency`,
 * `llmsim-echo`, `llmsim-script`, or `llmsim-lorem-<n>` for n from 1 to 100,000, with any suffix
 * (`llmsim-lorem-200-long`). Undefined for any other name.
 */
export function llmsim(modelName: string): Model | undefined {
  const model = modelNamed(modelName)
  return model && ((request) => (request.maxOutputTokens === undefined ? model(request) : cutOff(model, request)))
}

function modelNamed(modelName: string): Model | undefined {
  switch (modelName) {
    case 'llmsim-default':
      return modelOf(() => ({ tokens: DEFAULT_ANSWER, outputTokens: DEFAULT_ANSWER.length }))
    case 'llmsim-latency':
      return modelOf(() => ({ tokens: LATENCY_ANSWER, outputTokens: LATENCY_ANSWER.length, ...LATENCY }))
    case 'llmsim-echo':
      return modelOf(echo)
    case 'llmsim-script':
      return streamScript
    default:
      return loremModel(modelName)
  }
}

function loremModel(modelName: string): Model | undefined {
  const count = Number(/^llmsim-lorem-(\d{1,6})(?:-.*)?$/.exec(modelName)?.[1])
  if (!(count >= 1 && count <= MAX_LOREM_TOKENS)) return undefined
  return modelOf(() => ({ tokens: loremTokens(count), outputTokens: count, intervalMs: LOREM_INTERVAL_MS }))
}

function* loremTokens(count: number): Iterable<string> {
  for (let index = 0; index < count; index++) {
    const word = LOREM[index % LOREM.length] ?? ''
    yield index === 0 ? word : ` ${word}`
  }
}

function echo(request: ModelRequest): Answer {
  const text = textOf(request.messages.findLast((message) => message.role === 'user'))
  return { tokens: splitIntoTokens(text), outputTokens: estimateTokens(text) }
}

function textOf(message: Message | undefined): string {
  const parts = (message?.content ?? []).map((part) => (part.type === 'text' ? part.text : nameImage(part)))
  return parts.join('\n')
}

/** Names an image by its type and size, so that a client can see that the model received it. */
function nameImage(part: ContentPart): string {
  if (part.type !== 'image' || !part.base64) return '[image]'
  const size = imageSizeOf(Buffer.from(part.base64, 'base64'))
  return size === undefined ? '[image]' : `[image ${part.media_type} ${size.width}x${size.height}]`
}

function modelOf(answer: (request: ModelRequest) => Answer): Model {
  return (request) => stream(request, answer(request))
}

async function* stream(request: ModelRequest, answer: Answer): AsyncIterable<ModelPart> {
  await delay(answer.delayMs ?? 0, request.signal)
  for await (const delta of paced(answer.tokens, answer.intervalMs ?? 0, request.signal)) {
    yield { type: 'text', delta }
  }
  yield {
    type: 'finish',
    usage: {
      input_tokens: estimateInputTokens(request.systemPrompt, request.messages),
      output_tokens: answer.outputTokens,
    },
    finishReason: 'stop',
  }
}

/** Ends an answer at the call's limit, as providers do. A part of thinking or text counts as a token. */
async function* cutOff(model: Model, request: ModelRequest): AsyncIterable<ModelPart> {
  const { maxOutputTokens: limit = Number.POSITIVE_INFINITY, systemPrompt, messages } = request
  let tokens = 0
  for await (const part of model(request)) {
    if (part.type === 'tool_call') tokens += estimateTokens(JSON.stringify(part.call))
    else if (part.type !== 'finish') tokens++
    if (tokens > limit) {
      const usage = { input_tokens: estimateInputTokens(systemPrompt, messages), output_tokens: limit }
      return yield { type: 'finish', usage, finishReason: 'length' }
    }
    const isOver = part.type === 'finish' && part.usage.output_tokens > limit
    yield isOver ? { ...part, usage: { ...part.usage, output_tokens: limit } } : part
  }
}
