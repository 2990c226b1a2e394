import type { LanguageModelV4Message, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import { z } from 'zod'
import type { Message } from '../../../../contract/messages.ts'
import type { ProviderData } from '../model.ts'

type AssistantPart = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'][number]

const Options = z.record(z.string(), z.record(z.string(), z.json()))
const Length = z.int().min(0)

/**
 * Part of an answer, in the answer's order. Lengths are UTF-16 code units of the message's thinking or text, which are
 * not repeated here. `gap` is the length of the separator before a block of thinking.
 */
const Block = z.discriminatedUnion('type', [
  z.object({ type: z.literal('thinking'), gap: Length.optional(), length: Length, options: Options.optional() }),
  z.object({ type: z.literal('text'), length: Length, options: Options.optional() }),
  z.object({ type: z.literal('tool_call'), index: z.int().min(0), options: Options.optional() }),
])
export type Block = z.infer<typeof Block>

/** Keeps the fields of a part's metadata that the provider needs back. */
export function pickOptions(
  metadata: SharedV4ProviderMetadata | undefined,
  optionsKey: string,
  returnedFields: readonly string[],
): z.infer<typeof Options> | undefined {
  const fields = Object.entries(metadata?.[optionsKey] ?? {}).filter(
    ([field, value]) => returnedFields.includes(field) && value !== null && value !== undefined,
  )
  return fields.length === 0 ? undefined : Options.parse({ [optionsKey]: Object.fromEntries(fields) })
}

/** Maximum length of the data as JSON. Far above what vendors send, and small enough for an event. */
const MAX_DATA_LENGTH = 2 * 1024 * 1024
/** Matches escapes that Postgres refuses: NUL and surrogates. JSON.stringify escapes only lone surrogates. */
const UNSTORABLE = /\\u(?:0000|d[89a-f])/

/** Makes the data of an answer from its blocks. Undefined if there is nothing to give back or it cannot be stored. */
export function toProviderData(source: string, blocks: Block[]): ProviderData | undefined {
  const whole = blocks.filter((block) => block.type === 'tool_call' || block.length > 0 || block.options !== undefined)
  if (whole.every(({ options }) => options === undefined)) return undefined
  const json = JSON.stringify(whole)
  return json.length > MAX_DATA_LENGTH || UNSTORABLE.test(json) ? undefined : { source, blocks: whole }
}

/** Removes a call from the data of an answer that is to be stored without it. */
export function withoutCall(data: ProviderData | undefined, index: number): ProviderData | undefined {
  const read = z.array(Block).safeParse(data?.blocks)
  if (data === undefined || !read.success) return undefined
  const blocks = read.data.flatMap((block) => {
    if (block.type !== 'tool_call' || block.index < index) return [block]
    return block.index === index ? [] : [{ ...block, index: block.index - 1 }]
  })
  return { ...data, blocks }
}

/**
 * Rebuilds the parts of an agent's message as the provider sent them. Returns undefined if the data is another
 * provider's or model's, or does not match the message.
 */
export function restoreParts(
  message: Message,
  data: ProviderData | undefined,
  source: string,
): AssistantPart[] | undefined {
  if (data === undefined || data.source !== source) return undefined
  const blocks = z.array(Block).safeParse(data.blocks)
  return blocks.success ? fillBlocks(message, blocks.data) : undefined
}

function fillBlocks({ content, thinking }: Message, blocks: Block[]): AssistantPart[] | undefined {
  const takeThinking = createTaker(thinking ?? '')
  const takeText = createTaker(content.map((part) => (part.type === 'text' ? part.text : '')).join(''))
  const calls = content.filter((part) => part.type === 'tool_call')
  const unused = new Set(calls.keys())
  const parts: AssistantPart[] = []
  for (const block of blocks) {
    const options = block.options === undefined ? {} : { providerOptions: block.options }
    if (block.type === 'thinking') {
      takeThinking(block.gap ?? 0)
      parts.push({ type: 'reasoning', text: takeThinking(block.length) ?? '', ...options })
    } else if (block.type === 'text') {
      parts.push({ type: 'text', text: takeText(block.length) ?? '', ...options })
    } else {
      const call = calls[block.index]
      if (call === undefined || !unused.delete(block.index)) return undefined
      parts.push({ type: 'tool-call', toolCallId: call.id, toolName: call.name, input: call.arguments, ...options })
    }
  }
  const isWhole = takeThinking() === '' && takeText() === '' && unused.size === 0
  return isWhole ? parts : undefined
}

/** Returns a function that takes text off the front, by default the rest. It returns undefined beyond the end. */
function createTaker(text: string): (length?: number) => string | undefined {
  let position = 0
  return (length) => {
    const start = position
    position = length === undefined ? text.length : position + length
    return start > text.length ? undefined : text.slice(start, position)
  }
}
