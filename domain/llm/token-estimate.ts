import type { ContentPart, Message } from '../../contract/messages.ts'
import type { ToolSpec } from './model.ts'

/**
 * Text is counted in quarters of a token: four letters of English make one, two of Cyrillic or Greek, and each
 * character of Chinese or Japanese is about one. Good enough to size a context, not to bill.
 */
const QUARTERS = 4

/** Providers ask for 250 to 1,600 tokens an image, by its size, which is not known here. */
const IMAGE_TOKENS = 1000

/** What a message costs beside its content: its role, its borders, the id that pairs a call with its result. */
const MESSAGE_TOKENS = 4

export function estimateTokens(text: string): number {
  return tokensOf(quartersOf(text))
}

/** The content of a model call, without what providers add to each message. */
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

/** One message with what providers add to it. */
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
