import type { InputContentPart } from '../../../contract/messages.ts'
import { NOT_APPROVED, type RequestedCall, type SubmitToolResultsRequest } from '../../../contract/turns.ts'
import { conflict, invalid } from '../../../domain/kit/errors.ts'
import { isRecord } from '../../../lib/is-record.ts'
import { ASK_AGAIN } from '../turns.ts'
import type { ChatRequest, UIMessage, UIPart } from './endpoints.ts'

/** Purpose of a request: a message of the user, which may have been sent before, or answers to calls that wait. */
export type Intent =
  | { kind: 'message'; content: InputContentPart[]; isSentAgain: boolean }
  | { kind: 'answers'; parts: UIPart[] }

/**
 * Reads what a chat's request adds to the session: only its last message counts, because the session has the others.
 * A client that has lost an answer asks for another one. Throws `conflict` for an edited message, and `invalid`.
 */
export function readIntent({ messages, trigger, messageId }: ChatRequest): Intent {
  const isSentAgain = trigger === 'regenerate-message'
  const last = messages.at(-1) as UIMessage
  const at = `messages.${messages.length - 1}`
  if (last.role === 'assistant' && isSentAgain) throw conflict(`An answer cannot be generated again; ${ASK_AGAIN}`)
  if (last.role === 'assistant') return { kind: 'answers', parts: last.parts }
  if (last.role !== 'user') throw invalid(`${at}.role: must be user or assistant`)
  if (messageId != null && !isSentAgain) throw conflict(`A message that was sent cannot be edited; ${ASK_AGAIN}`)
  const content = last.parts.flatMap((part, index) => contentOf(part, `${at}.parts.${index}`))
  if (content.length === 0) throw invalid(`${at}.parts: must have text or a file`)
  return { kind: 'message', content, isSentAgain }
}

function contentOf(part: UIPart, at: string): InputContentPart[] {
  if (part.type === 'text') {
    if (typeof part.text !== 'string') throw invalid(`${at}.text: must be a string`)
    return part.text === '' ? [] : [{ type: 'text', text: part.text }]
  }
  return part.type === 'file' ? [fileOf(part, at)] : []
}

const DATA_URL = /^data:[^,]*?(;base64)?,/

/** An image goes to the model as it is, a text file as text. */
function fileOf({ url, mediaType, filename }: UIPart, at: string): InputContentPart {
  if (typeof url !== 'string') throw invalid(`${at}.url: must be a string`)
  if (typeof mediaType !== 'string') throw invalid(`${at}.mediaType: must be a string`)
  const [head, base64] = DATA_URL.exec(url) ?? []
  if (mediaType.startsWith('image/')) {
    if (head === undefined) return { type: 'image', url }
    if (base64 === undefined) throw invalid(`${at}.url: must be a data: URL in base64, or https:`)
    return { type: 'image', base64: url.slice(head.length), media_type: mediaType }
  }
  if (head === undefined || !isReadable(mediaType)) {
    throw invalid(`${at}: must be an image, or a text file as a data: URL, not ${mediaType.slice(0, 100)}`)
  }
  const rest = url.slice(head.length)
  const name = typeof filename === 'string' ? filename.slice(0, 255) : mediaType
  return {
    type: 'text',
    text: `File ${name}:\n${base64 === undefined ? decodePercent(rest, at) : decodeBase64(rest)}\n`,
  }
}

const isReadable = (mediaType: string): boolean =>
  /^text\/|^application\/(json|xml|yaml)\b|\+(json|xml)$/.test(mediaType)
const decodeBase64 = (text: string): string => Buffer.from(text, 'base64').toString().replaceAll('\0', '')

function decodePercent(text: string, at: string): string {
  try {
    return decodeURIComponent(text).replaceAll('\0', '')
  } catch {
    throw invalid(`${at}.url: must be percent-encoded UTF-8`)
  }
}

type Result = SubmitToolResultsRequest['tool_results'][number]

/** Returns the results that the parts of an assistant message have for the calls that wait; all else is ignored. */
export const answersTo = (pending: RequestedCall[], parts: UIPart[]): Result[] =>
  pending.flatMap((call) => {
    const part = parts.findLast((candidate) => candidate.toolCallId === call.id)
    const result = part && resultOf(call, part)
    return result === undefined ? [] : [{ tool_call_id: call.id, ...result }]
  })

function resultOf(call: RequestedCall, part: UIPart): Omit<Result, 'tool_call_id'> | undefined {
  if (call.kind === 'approval') return decisionOf(part)
  if (part.state === 'output-available') return { result: part.output ?? null }
  if (part.state !== 'output-error') return undefined
  return { error: isText(part.errorText) ? part.errorText : 'The tool failed.' }
}

function decisionOf({ state, approval }: UIPart): Omit<Result, 'tool_call_id'> | undefined {
  const { approved, reason } = isRecord(approval) ? approval : {}
  if (state !== 'approval-responded' && state !== 'output-denied') return undefined
  if (state === 'approval-responded' && approved === true) return { result: { approved } }
  if (state === 'approval-responded' && approved !== false) return undefined
  return isText(reason) ? { error: `${NOT_APPROVED}: ${reason.slice(0, 1000)}` } : { result: { approved: false } }
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
