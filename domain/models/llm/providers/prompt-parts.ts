import type { LanguageModelV4Message } from '@ai-sdk/provider'
import type { ContentPart, Message } from '../../../../contract/messages.ts'
import type { Protocol } from './protocol.ts'

type ContentOf<Role extends 'user' | 'assistant' | 'tool'> = Extract<LanguageModelV4Message, { role: Role }>['content']
export type UserPart = ContentOf<'user'>[number]
type AssistantPart = ContentOf<'assistant'>[number]
type ToolPart = Extract<ContentOf<'tool'>[number], { type: 'tool-result' }>
type PartOf<Type extends ContentPart['type']> = Extract<ContentPart, { type: Type }>

export function toUserParts(content: ContentPart[]): UserPart[] {
  return content.flatMap((part) => {
    if (part.type === 'text') return [{ type: 'text' as const, text: part.text }]
    return part.type === 'image' || part.type === 'image_file' ? [toImagePart(part)] : []
  })
}

/** Converts an image. Without data it is only mentioned: its URL is never passed on for the provider to fetch. */
function toImagePart(part: PartOf<'image'> | PartOf<'image_file'>): UserPart {
  if (part.type === 'image_file') return { type: 'text', text: `[image ${part.filename ?? part.image_id}]` }
  if (!part.base64) return { type: 'text', text: '[image not available]' }
  return { type: 'file', mediaType: part.media_type ?? 'image/*', data: { type: 'data', data: part.base64 } }
}

/** Converts the text and the calls of an agent's message, without its thinking. */
export function toAssistantParts(content: ContentPart[]): AssistantPart[] {
  return content.flatMap((part): AssistantPart[] => {
    if (part.type === 'text') return part.text === '' ? [] : [{ type: 'text', text: part.text }]
    if (part.type !== 'tool_call') return []
    return [{ type: 'tool-call', toolCallId: part.id, toolName: part.name, input: part.arguments }]
  })
}

/** Names of tools by the ids of their calls. Some protocols repeat the name in the result. */
export type ToolNames = ReadonlyMap<string, string>

export const toolNamesOf = (messages: Message[]): ToolNames =>
  new Map(
    messages.flatMap(({ content }) =>
      content.flatMap((part) => (part.type === 'tool_call' ? [[part.id, part.name]] : [])),
    ),
  )

export function toResultParts({ content }: Message, names: ToolNames, images: Protocol['images']): ToolPart[] {
  const results = content.filter((part) => part.type === 'tool_result')
  const attached = images === 'in_tool_results' ? toUserParts(content) : []
  return results.map((result, index) => ({
    type: 'tool-result',
    toolCallId: result.tool_call_id,
    toolName: names.get(result.tool_call_id) ?? 'unknown',
    output: toOutput(result, index === results.length - 1 ? attached : []),
  }))
}

/** Converts a result with its images and texts about omitted ones. With these, an error is sent like a result. */
function toOutput({ result, error }: PartOf<'tool_result'>, attached: UserPart[]): ToolPart['output'] {
  const failed = error !== undefined && error !== null
  if (failed && attached.length === 0) return { type: 'error-text', value: error }
  const value = failed ? { error } : (result ?? null)
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return attached.length === 0
    ? { type: 'text', value: text }
    : { type: 'content', value: [{ type: 'text', text }, ...attached] }
}
