import type { LanguageModelV4FunctionTool, LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider'
import type { Message } from '../../../../contract/messages.ts'
import type { ModelRequest, ToolSpec } from '../model.ts'
import {
  type ToolNames,
  toAssistantParts,
  toolNamesOf,
  toResultParts,
  toUserParts,
  type UserPart,
} from './prompt-parts.ts'
import type { Protocol } from './protocol.ts'
import { restoreParts } from './provider-data.ts'

type Layout = { source: string; images: Protocol['images'] }

/** Converts a conversation. Consecutive messages with tool results become one, as some providers require. */
export function toPrompt(request: ModelRequest, layout: Layout): LanguageModelV4Prompt {
  const { systemPrompt, messages } = request
  const prompt: LanguageModelV4Prompt = systemPrompt === '' ? [] : [{ role: 'system', content: systemPrompt }]
  const names = toolNamesOf(messages)
  const results: Message[] = []
  for (const message of messages) {
    if (message.role === 'tool_result') {
      results.push(message)
    } else {
      prompt.push(...toResultMessages(results.splice(0), names, layout))
      prompt.push(...toPromptMessages(message, request, layout))
    }
  }
  prompt.push(...toResultMessages(results, names, layout))
  return prompt
}

/**
 * Converts the tool results of a step. If the protocol's results contain only text, a user message after all results
 * has their images and texts about omitted ones.
 */
function toResultMessages(messages: Message[], names: ToolNames, { images }: Layout): LanguageModelV4Message[] {
  const results = messages.flatMap((message) => toResultParts(message, names, images))
  const rest: UserPart[] =
    images === 'after_tool_results' ? messages.flatMap(({ content }) => toUserParts(content)) : []
  const introduction: UserPart = { type: 'text', text: 'Images of the tool results:' }
  return [
    ...(results.length === 0 ? [] : [{ role: 'tool' as const, content: results }]),
    ...(rest.length === 0 ? [] : [{ role: 'user' as const, content: [introduction, ...rest] }]),
  ]
}

/**
 * Converts a message. Omits an empty message, such as an answer cut off before its first token, because servers refuse
 * it.
 */
function toPromptMessages(message: Message, { providerData }: ModelRequest, { source }: Layout): LanguageModelV4Prompt {
  switch (message.role) {
    case 'user':
      return [{ role: 'user', content: toUserParts(message.content) }]
    case 'agent': {
      // Without the provider's own data, thinking is left out: no provider accepts another provider's.
      const restored = restoreParts(message, providerData?.get(message.id), source)
      const content = restored ?? toAssistantParts(message.content)
      return [...(content.length === 0 ? [] : [{ role: 'assistant' as const, content }]), ...toComplaint(message)]
    }
    case 'tool_result':
      return []
    case 'system':
      return [
        { role: 'system', content: message.content.map((part) => (part.type === 'text' ? part.text : '')).join('') },
      ]
  }
}

/** Tells the model why its answer was not accepted, as its user, until it answers again. */
function toComplaint({ metadata }: Message): LanguageModelV4Prompt {
  const problem = metadata?.output_error
  if (typeof problem !== 'string') return []
  const text = `The answer was not accepted. ${problem} Give the whole answer again, so that it fits.`
  return [{ role: 'user', content: [{ type: 'text', text }] }]
}

/** Removes blank texts, and messages that have nothing else. Some providers refuse them. */
export function withoutBlankText(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  const isBlank = (part: { type: string; text?: string; providerOptions?: unknown }) =>
    part.type === 'text' && part.text?.trim() === '' && part.providerOptions === undefined
  return prompt.flatMap((message): LanguageModelV4Prompt => {
    if (message.role !== 'user' && message.role !== 'assistant') return [message]
    const content = message.content.filter((part) => !isBlank(part))
    // The content of each role keeps its own type; the compiler sees only the union of both.
    return content.length === 0 ? [] : [{ ...message, content } as LanguageModelV4Message]
  })
}

export function toTools(tools: ToolSpec[]): LanguageModelV4FunctionTool[] {
  return tools.map(({ name, description, parameters }) => ({
    type: 'function',
    name,
    description,
    // The JSON Schema is passed through unchanged. The SDK's type for it is narrower than this service's.
    inputSchema: parameters as LanguageModelV4FunctionTool['inputSchema'],
  }))
}
