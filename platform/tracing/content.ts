import type { ContentPart, Message } from '../../contract/messages.ts'
import type { TracedAnswer } from '../../domain/kit/tracing.ts'

/** Limit on the JSON of one attribute. Of a long conversation the newest messages that fit are kept. */
const MAX_CHARACTERS = 64 * 1024

const ROLES: Record<Message['role'], string> = {
  system: 'system',
  user: 'user',
  agent: 'assistant',
  tool_result: 'tool',
}

export const describeInstructions = (text: string): string => describeValue([{ type: 'text', content: text }])

/** Describes messages as the conventions do, without images. */
export function describeInput(messages: Message[]): string {
  const described: string[] = []
  let length = 2
  for (const { role, content } of messages.toReversed()) {
    const json = JSON.stringify({ role: ROLES[role], parts: content.flatMap(toPart) })
    length += json.length + 1
    if (length > MAX_CHARACTERS) break
    described.unshift(json)
  }
  return `[${described.join(',')}]`
}

export function describeOutput({ text, toolCalls, finishReason }: TracedAnswer): string {
  const calls = toolCalls.map(({ id, name, arguments: args }) => ({ type: 'tool_call', id, name, arguments: args }))
  const parts = [...(text === '' ? [] : [{ type: 'text', content: text }]), ...calls]
  return describeValue([{ role: 'assistant', parts, finish_reason: finishReason }])
}

/** Describes arguments or the result of a tool, or anything else as JSON. */
export function describeValue(value: unknown): string {
  const json = JSON.stringify(value ?? null)
  return json.length <= MAX_CHARACTERS ? json : JSON.stringify(`left out: ${json.length} characters of JSON`)
}

function toPart(part: ContentPart): object[] {
  if (part.type === 'text') return [{ type: 'text', content: part.text }]
  if (part.type === 'tool_call') return [{ type: 'tool_call', id: part.id, name: part.name, arguments: part.arguments }]
  if (part.type !== 'tool_result') return []
  return [{ type: 'tool_call_response', id: part.tool_call_id, response: part.error ?? part.result ?? null }]
}
