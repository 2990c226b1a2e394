import type { ContentPart, Message } from '../../../contract/messages.ts'
import { type Model, ModelError, type ModelPart, type ModelRequest } from '../../../domain/models/llm/model.ts'

export function requestOf(changes: Partial<ModelRequest> = {}): ModelRequest {
  return {
    systemPrompt: '',
    messages: [],
    tools: [],
    callIndex: 0,
    failures: 0,
    signal: new AbortController().signal,
    ...changes,
  }
}

export function messageOf(role: Message['role'], ...content: ContentPart[]): Message {
  const id = `message_${'0'.repeat(32)}`
  return {
    id,
    session_id: `session_${'0'.repeat(32)}`,
    sequence: 1,
    role,
    content,
    created_at: '2026-01-01T00:00:00.000Z',
  }
}

export const userSays = (text: string) => messageOf('user', { type: 'text', text })

export type Asked = {
  parts: ModelPart[]
  text: string
  textDeltas: string[]
  thinking: string
  calls: Extract<ModelPart, { type: 'tool_call' }>['call'][]
  finish: Extract<ModelPart, { type: 'finish' }> | undefined
  error: unknown
}

/** Reads the whole answer. An error thrown by the model is returned in `error`, with the parts before it. */
export async function ask(model: Model | undefined, changes: Partial<ModelRequest> = {}): Promise<Asked> {
  if (model === undefined) throw new Error('There is no such model.')
  const parts: ModelPart[] = []
  let error: unknown
  try {
    for await (const part of model(requestOf(changes))) parts.push(part)
  } catch (thrown) {
    error = thrown
  }
  const textDeltas = parts.flatMap((part) => (part.type === 'text' ? [part.delta] : []))
  return {
    parts,
    text: textDeltas.join(''),
    textDeltas,
    thinking: parts.flatMap((part) => (part.type === 'thinking' ? [part.delta] : [])).join(''),
    calls: parts.flatMap((part) => (part.type === 'tool_call' ? [part.call] : [])),
    finish: parts.find((part) => part.type === 'finish'),
    error,
  }
}

/** Returns the model's failure. Throws if there was none. */
export function failureOf(asked: Asked): ModelError {
  if (asked.error instanceof ModelError) return asked.error
  throw new Error(`Expected a ModelError, got ${String(asked.error)} after ${asked.parts.length} parts.`)
}
