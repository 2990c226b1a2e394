import type { ContentPart, Message } from '../../contract/messages.ts'

/** The usual rule of thumb for English text; good enough to size a context, not to bill. */
const CHARACTERS_PER_TOKEN = 4

export function estimateTokens(text: string): number {
  return tokensOf(text.length)
}

/** Images count nothing: their base64 says nothing about the tokens a provider makes of them. */
export function estimateInputTokens(systemPrompt: string, messages: Message[]): number {
  let characters = systemPrompt.length
  for (const message of messages) {
    for (const part of message.content) characters += countCharacters(part)
  }
  return tokensOf(characters)
}

function tokensOf(characters: number): number {
  return Math.ceil(characters / CHARACTERS_PER_TOKEN)
}

function countCharacters(part: ContentPart): number {
  switch (part.type) {
    case 'text':
      return part.text.length
    case 'tool_call':
      return part.name.length + JSON.stringify(part.arguments).length
    case 'tool_result':
      return part.error?.length ?? JSON.stringify(part.result ?? null).length
    case 'image':
    case 'image_file':
      return 0
  }
}
