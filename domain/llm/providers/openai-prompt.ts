import type { createOpenAI } from '@ai-sdk/openai'
import type { ContentPart, Message } from '../../../contract/messages.ts'
import type { ToolSpec } from '../model.ts'

/** The SDK's types, derived from its chat model: the package that declares them is not a dependency of this service. */
export type ChatModel = ReturnType<ReturnType<typeof createOpenAI>['chat']>
export type ChatCall = Parameters<ChatModel['doStream']>[0]
export type ChatPart =
  Awaited<ReturnType<ChatModel['doStream']>>['stream'] extends ReadableStream<infer Part> ? Part : never
type PromptMessage = ChatCall['prompt'][number]
type UserPart = Extract<PromptMessage, { role: 'user' }>['content'][number]
type AssistantPart = Extract<PromptMessage, { role: 'assistant' }>['content'][number]
type ToolPart = Extract<PromptMessage, { role: 'tool' }>['content'][number]
type FunctionTool = Extract<NonNullable<ChatCall['tools']>[number], { type: 'function' }>
type PartOf<Type extends ContentPart['type']> = Extract<ContentPart, { type: Type }>

export function toPrompt(systemPrompt: string, messages: Message[]): PromptMessage[] {
  const prompt: PromptMessage[] = systemPrompt === '' ? [] : [{ role: 'system', content: systemPrompt }]
  const images: UserPart[] = []
  for (const message of messages) {
    if (message.role === 'tool_result') {
      images.push(...message.content.flatMap(toUserParts))
    } else {
      flushImages(prompt, images)
    }
    prompt.push(...toPromptMessages(message))
  }
  flushImages(prompt, images)
  return prompt
}

/**
 * Appends the images of tool results, and texts about those left out, as a user message. Tool messages contain only
 * text, and nothing may stand between the results of one step, so the images follow the last result.
 */
function flushImages(prompt: PromptMessage[], images: UserPart[]): void {
  if (images.length === 0) return
  prompt.push({ role: 'user', content: [{ type: 'text', text: 'Images of the tool results:' }, ...images.splice(0)] })
}

/** Converts a message. Omits an empty one, such as an answer cut off before its first token: servers refuse those. */
function toPromptMessages(message: Message): PromptMessage[] {
  switch (message.role) {
    case 'user':
      return [{ role: 'user', content: message.content.flatMap(toUserParts) }]
    case 'agent': {
      // Thinking is left out: Chat Completions has no field for it in requests.
      const content = message.content.flatMap(toAssistantParts)
      return content.length === 0 ? [] : [{ role: 'assistant', content }]
    }
    case 'tool_result': {
      const content = message.content.flatMap(toToolParts)
      return content.length === 0 ? [] : [{ role: 'tool', content }]
    }
    case 'system':
      return [
        { role: 'system', content: message.content.map((part) => (part.type === 'text' ? part.text : '')).join('') },
      ]
  }
}

function toUserParts(part: ContentPart): UserPart[] {
  if (part.type === 'text') return [{ type: 'text', text: part.text }]
  return isImage(part) ? [toImagePart(part)] : []
}

function toAssistantParts(part: ContentPart): AssistantPart[] {
  if (part.type === 'text') return part.text === '' ? [] : [{ type: 'text', text: part.text }]
  if (part.type !== 'tool_call') return []
  return [{ type: 'tool-call', toolCallId: part.id, toolName: part.name, input: part.arguments }]
}

function toToolParts(part: ContentPart): ToolPart[] {
  if (part.type !== 'tool_result') return []
  const failed = part.error !== undefined && part.error !== null
  const value = failed ? { error: part.error } : (part.result ?? null)
  const output = { type: 'text' as const, value: typeof value === 'string' ? value : JSON.stringify(value) }
  // The wire format has no tool name in a result, so the SDK does not send it.
  return [{ type: 'tool-result', toolCallId: part.tool_call_id, toolName: '', output }]
}

function isImage(part: ContentPart): part is PartOf<'image'> | PartOf<'image_file'> {
  return part.type === 'image' || part.type === 'image_file'
}

function toImagePart(part: PartOf<'image'> | PartOf<'image_file'>): UserPart {
  // The caller replaces a stored image by its bytes. An image that is gone is at least mentioned.
  if (part.type === 'image_file') return { type: 'text', text: `[image ${part.filename ?? part.image_id}]` }
  const mediaType = part.media_type ?? 'image/*'
  if (part.base64) return { type: 'file', mediaType, data: { type: 'data', data: part.base64 } }
  if (part.url && URL.canParse(part.url)) {
    return { type: 'file', mediaType: 'image/*', data: { type: 'url', url: new URL(part.url) } }
  }
  return { type: 'text', text: '[image]' }
}

export function toTools(tools: ToolSpec[]): FunctionTool[] {
  return tools.map(({ name, description, parameters }) => ({
    type: 'function',
    name,
    description,
    // The JSON Schema is passed through unchanged. The SDK's type for it is narrower than this service's.
    inputSchema: parameters as FunctionTool['inputSchema'],
  }))
}
