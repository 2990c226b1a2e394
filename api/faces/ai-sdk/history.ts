import { type Message, textOf } from '../../../contract/messages.ts'
import { NOT_APPROVED, type RequestedCall, type Turn } from '../../../contract/turns.ts'
import type { UIMessage, UIPart } from './endpoints.ts'
import { approvalData, fileOf, uiMessageId, type Version } from './translate.ts'

/**
 * Presents a conversation as UI messages, the answers of a turn as one. Leaves out what a running turn has answered so
 * far, because the client that resumes it gets its stream from the start.
 */
export function toUIMessages(messages: Message[], current: Turn | undefined, version: Version): UIMessage[] {
  const found: UIMessage[] = []
  const outputs = new Map(messages.flatMap((message) => (message.role === 'tool_result' ? outputsOf(message) : [])))
  const pending = new Map(current?.pending_tool_calls.map((call) => [call.id, call]))
  for (const message of messages) {
    const { id, role, turn_id } = message
    if (role === 'user') found.push({ id, role, parts: message.content.flatMap(partOfUser) })
    if (turn_id == null) continue
    const isCurrent = turn_id === current?.id
    if (isCurrent && current.status !== 'waiting') continue
    const answer = answerOf(found, uiMessageId(turn_id), message.input_message_id)
    if (role === 'tool_result') answer.parts.push(...message.content.flatMap(fileOf))
    else answer.parts.push(...partsOfAgent(message, { outputs, pending: isCurrent ? pending : new Map(), version }))
  }
  return found
}

/**
 * Returns the message of a turn, which is added when its first answer comes: after its question, also where another
 * question came meanwhile.
 */
function answerOf(found: UIMessage[], id: string, questionId: string | null | undefined): UIMessage {
  const known = found.findLast((message) => message.id === id)
  if (known !== undefined) return known
  const added: UIMessage = { id, role: 'assistant', parts: [] }
  const question = found.findLastIndex((message) => message.id === questionId)
  found.splice(question < 0 ? found.length : question + 1, 0, added)
  return added
}

function partOfUser(part: Message['content'][number]): UIPart[] {
  if (part.type === 'image_file') return [{ type: 'text', text: `Image ${part.filename ?? part.image_id}` }]
  return part.type === 'text' ? [{ type: 'text', text: part.text }] : fileOf(part)
}

type Output = { result?: unknown; error?: string | null | undefined }

/** Returns the results of a message by turn and call: models use an id again in another turn. */
const outputsOf = ({ content, turn_id }: Message): [string, Output][] =>
  content.flatMap((part): [string, Output][] =>
    part.type === 'tool_result' ? [[`${turn_id} ${part.tool_call_id}`, part]] : [],
  )

type Known = { outputs: Map<string, Output>; pending: Map<string, RequestedCall>; version: Version }

function partsOfAgent({ content, thinking, turn_id }: Message, known: Known): UIPart[] {
  const text = textOf(content)
  return [
    { type: 'step-start' },
    ...(thinking ? [{ type: 'reasoning', text: thinking, state: 'done' }] : []),
    ...(text === '' ? [] : [{ type: 'text', text, state: 'done' }]),
    ...content.flatMap((part) => (part.type === 'tool_call' ? partsOfCall(part, `${turn_id}`, known) : [])),
  ]
}

type Call = { id: string; name: string; arguments: Record<string, unknown> }

function partsOfCall(
  { id, name, arguments: input }: Call,
  turnId: string,
  { outputs, pending, version }: Known,
): UIPart[] {
  const part = { type: `tool-${name}`, toolCallId: id, input }
  const waits = pending.get(id)
  if (waits?.kind === 'client_tool') return [{ ...part, state: 'input-available' }]
  const ours = { ...part, providerExecuted: true }
  if (waits !== undefined && version === '5') {
    return [{ ...ours, state: 'input-available' }, approvalData(waits)]
  }
  if (waits !== undefined) return [{ ...ours, state: 'approval-requested', approval: { id } }]
  const output = outputs.get(`${turnId} ${id}`)
  if (output === undefined) return [{ ...ours, state: 'input-available' }]
  if (output.error?.startsWith(NOT_APPROVED) && version !== '5')
    return [{ ...ours, state: 'output-denied', approval: { id, approved: false } }]
  if (output.error != null) return [{ ...ours, state: 'output-error', errorText: output.error }]
  return [{ ...ours, state: 'output-available', output: output.result ?? null }]
}
