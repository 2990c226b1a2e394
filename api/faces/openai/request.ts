import { type InputContentPart, textOf } from '../../../contract/messages.ts'
import type { RequestedCall, SubmitToolResultsRequest } from '../../../contract/turns.ts'
import { invalid } from '../../../domain/kit/errors.ts'
import { isRecord } from '../../../lib/is-record.ts'
import type { ChatMessage, CompletionRequest, ContentPart } from './endpoints.ts'

/** Headers that name a conversation, in the order in which they count: our own, Open WebUI's, and other clients'. */
const SESSION_HEADERS = ['X-Session-Id', 'X-OpenWebUI-Chat-Id', 'X-Conversation-Id', 'X-Hermes-Session-Id']

/**
 * Returns the client's id of a conversation, from a header or `metadata.session_id`. Undefined if the request stands
 * alone: it has no id, one of a chat that is not kept (`local:…`), or a variable that its client has not filled in.
 */
export function conversationOf(header: (name: string) => string, { metadata }: CompletionRequest): string | undefined {
  const named = metadata?.session_id
  const ids = [...SESSION_HEADERS.map(header), typeof named === 'string' ? named : '']
  const id = ids.find((candidate) => candidate !== '')
  if (id === undefined || id.startsWith('local:') || id.startsWith('{{')) return undefined
  if (id.length <= 255 && /^[\x20-\x7e]+$/.test(id)) return id
  throw invalid('The id of the session: must have at most 255 ASCII characters')
}

/**
 * Reports whether a client wants a title, tags or the like for a chat. Such a request must not become a message of it.
 */
export function isTask(header: (name: string) => string, { stream, messages }: CompletionRequest): boolean {
  const named = header('X-Task')
  if (named !== '' && !named.startsWith('{{')) return true
  const [first, ...more] = messages.filter(({ role }) => role === 'user')
  return stream !== true && more.length === 0 && textOfMessage(first).startsWith('### Task:')
}

/** Purpose of a request: a new message of the user, or results of the calls before. */
export type Intent = { kind: 'message'; content: InputContentPart[] } | { kind: 'results'; results: ToolResult[] }
export type ToolResult = { id: string; text: string }

/** Reads what a request adds: its last message, or the tool messages at its end. Throws `invalid`. */
export function readIntent({ messages }: CompletionRequest): Intent {
  const last = messages.length - 1
  const message = messages[last] as ChatMessage
  if (message.role === 'tool') {
    const begin = messages.findLastIndex(({ role }) => role !== 'tool') + 1
    return {
      kind: 'results',
      results: messages.slice(begin).map((one, index) => resultOf(one, `messages.${begin + index}`)),
    }
  }
  if (message.role !== 'user') throw invalid(`messages.${last}.role: must be user or tool`)
  const content = contentOf(message, `messages.${last}.content`)
  if (content.length === 0) throw invalid(`messages.${last}.content: must have text or an image`)
  return { kind: 'message', content }
}

function resultOf(message: ChatMessage, at: string): ToolResult {
  if (!message.tool_call_id) throw invalid(`${at}.tool_call_id: is required`)
  return { id: message.tool_call_id, text: textOfMessage(message) }
}

function contentOf({ content }: ChatMessage, at: string): InputContentPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return (content ?? []).map((part, index) => partOf(part, `${at}.${index}`))
}

function partOf(part: ContentPart, at: string): InputContentPart {
  if (part.type === 'text') {
    if (typeof part.text !== 'string') throw invalid(`${at}.text: must be a string`)
    return { type: 'text', text: part.text }
  }
  if (part.type !== 'image_url') throw invalid(`${at}.type: must be text or image_url`)
  const url = isRecord(part.image_url) ? part.image_url.url : part.image_url
  if (typeof url !== 'string') throw invalid(`${at}.image_url.url: must be a string`)
  const [head, media_type] = /^data:(image\/[\w.+-]+);base64,/.exec(url) ?? []
  if (head !== undefined) return { type: 'image', base64: url.slice(head.length), media_type }
  if (url.startsWith('data:')) throw invalid(`${at}.image_url.url: must be an image in base64, or https:`)
  return { type: 'image', url }
}

export function textOfMessage(message: ChatMessage | undefined): string {
  const content = message?.content ?? ''
  if (typeof content === 'string') return content
  return content.map(({ text }) => (typeof text === 'string' ? text : '')).join('')
}

/** Number of bytes of earlier messages that a request without a session may bring along. */
const MAX_HISTORY = 500_000
const NAMES: Record<string, string> = { user: 'User', assistant: 'Assistant', tool: 'Result of a tool' }

/**
 * Puts the conversation so far before the last message, as a quotation, for a session that has not seen it. The oldest
 * messages are left out of a long one.
 */
export function withHistory({ messages }: CompletionRequest, content: InputContentPart[]): InputContentPart[] {
  const newest: string[] = []
  let left = MAX_HISTORY - Buffer.byteLength(textOf(content))
  for (const message of messages.slice(0, -1).reverse()) {
    const text = textOfMessage(message).trim()
    const name = NAMES[message.role]
    left -= Buffer.byteLength(text)
    if (left < 0) break
    if (name !== undefined && text !== '') newest.push(`${name}: ${text}`)
  }
  if (newest.length === 0) return content
  const quoted = `The conversation so far:\n\n${newest.reverse().join('\n\n')}\n\nThe user now says:\n\n`
  const [first, ...more] = content
  if (first?.type === 'text') return [{ type: 'text', text: quoted + first.text }, ...more]
  return [{ type: 'text', text: quoted }, ...content]
}

type Result = SubmitToolResultsRequest['tool_results'][number]

/** Returns the results for the calls that wait. Results of other calls are ignored: clients repeat them. */
export const resultsFor = (pending: RequestedCall[], results: ToolResult[]): Result[] =>
  pending.flatMap(({ id, kind }) => {
    const found = results.findLast((result) => result.id === id)
    return found === undefined || kind !== 'client_tool' ? [] : [{ tool_call_id: id, result: found.text }]
  })

/** Returns what a message decides about calls that wait for approval; undefined if it is another message. */
export function decisionOf(content: InputContentPart[]): boolean | undefined {
  const [part, ...more] = content
  const word = part?.type === 'text' && more.length === 0 ? part.text.trim().toLowerCase() : ''
  return word === 'approve' ? true : word === 'deny' ? false : undefined
}

/** Ids of calls in answers without a session's id name the session, which their results then find. */
export const callIdIn = (sessionHex: string, id: string): string => `${id}.${sessionHex}`

export function sessionOfCall(id: string): { sessionHex: string; id: string } | undefined {
  const [, given, sessionHex] = /^(.+)\.([0-9a-f]{32})$/s.exec(id) ?? []
  return given === undefined || sessionHex === undefined ? undefined : { sessionHex, id: given }
}
