import type { ContentPart, Message } from '../../../contract/messages.ts'
import type { ToolSpec } from './model.ts'

/**
 * Quarters in a token. Text is counted in quarters: four English letters make a token, two Cyrillic or Greek ones, and
 * each Chinese or Japanese character is about one. Accurate enough to size a context, not to bill.
 */
const QUARTERS = 4

/** Estimate for an image. Providers charge 250 to 1,600 tokens, depending on its size, which is unknown here. */
const IMAGE_TOKENS = 1000

/** Overhead of a message besides its content: its role, its delimiters, the id that pairs a call with its result. */
export const MESSAGE_TOKENS = 4

export function estimateTokens(text: string): number {
  return tokensOf(quartersOf(text))
}

/** Estimates the content of a model call, without the overhead that providers add to each message. */
export function estimateInputTokens(systemPrompt: string, messages: Message[], tools: ToolSpec[] = []): number {
  let quarters = quartersOf(systemPrompt)
  for (const message of messages) {
    for (const part of message.content) quarters += partQuarters(part)
  }
  for (const { name, description, parameters } of tools) {
    quarters += quartersOf(name) + quartersOf(description) + quartersOf(JSON.stringify(parameters))
  }
  return tokensOf(quarters)
}

/** Estimates one message, including the overhead that providers add to it. */
export function estimateMessageTokens(message: Message): number {
  let quarters = 0
  for (const part of message.content) quarters += partQuarters(part)
  return MESSAGE_TOKENS + tokensOf(quarters)
}

const tokensOf = (quarters: number): number => Math.ceil(quarters / QUARTERS)

function quartersOf(text: string): number {
  let quarters = text.length
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code >= 0x2e80) quarters += 3
    else if (code >= 0x80) quarters += 1
  }
  return quarters
}

function partQuarters(part: ContentPart): number {
  switch (part.type) {
    case 'text':
      return quartersOf(part.text)
    case 'tool_call':
      return quartersOf(part.name) + quartersOf(JSON.stringify(part.arguments))
    case 'tool_result':
      return quartersOf(part.error ?? JSON.stringify(part.result ?? null))
    case 'image':
    case 'image_file':
      return IMAGE_TOKENS * QUARTERS
  }
}
