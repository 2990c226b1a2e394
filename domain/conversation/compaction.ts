import { hash } from 'node:crypto'
import type { ContentPart, Message } from '../../contract/messages.ts'
import { toId } from '../kit/ids.ts'
import { estimateMessageTokens } from '../models/llm/token-estimate.ts'
import { isRedactedResult } from '../tools/call-secrets/redact-call.ts'

/**
 * Points at which a conversation was cut. Each is the sequence of a message and covers everything before that message
 * in the model's reading order, which differs from the order of sequences if messages were queued. 0 means that nothing
 * was cut. `clearedBefore` cuts the content of tool results, `droppedBefore` whole messages.
 */
export type Thresholds = { clearedBefore: number; droppedBefore: number }

export type Compaction = Thresholds & { inputTokensBefore: number; inputTokensAfter: number }

/** Share of the context that the input may use. The rest is for the answer and for the estimate's error. */
const INPUT_SHARE = 0.8
/**
 * Share of the input budget that is removed at a time, so that the cached beginning of the input stays the same for
 * several steps.
 */
const PORTION_SHARE = 0.1

const CLEARED_RESULT = '[This result was removed to save space. Call the tool again if it is needed.]'
const LEFT_OUT = '[Earlier messages of this conversation were left out, because they no longer fit.]'

/**
 * Pairs every tool call with a result, because providers refuse one without the other. A call without a result gets a
 * cancelled one. A result without a call in the preceding message is dropped; earlier messages do not count, because
 * earlier releases could repeat an id in later turns.
 */
export function patchDanglingCalls(messages: Message[]): Message[] {
  const patched: Message[] = []
  let caller: Message | undefined
  let open: string[] = []
  const close = () => {
    if (caller !== undefined) patched.push(...cancelledResults(caller, open))
  }
  for (const message of messages) {
    if (message.role === 'tool_result') {
      const answer = answersTo(message, open)
      if (answer !== undefined) patched.push(answer)
      continue
    }
    close()
    caller = message
    open = message.content.flatMap((part) => (part.type === 'tool_call' ? [part.id] : []))
    patched.push(message)
  }
  close()
  return patched
}

/** Removes results that answer no call in `open`, and answered calls from `open`. Undefined if no result remains. */
function answersTo(message: Message, open: string[]): Message | undefined {
  let answered = 0
  const content = message.content.filter((part) => {
    if (part.type !== 'tool_result') return true
    const index = open.indexOf(part.tool_call_id)
    if (index === -1) return false
    open.splice(index, 1)
    answered++
    return true
  })
  if (answered === 0) return undefined
  return content.length === message.content.length ? message : { ...message, content }
}

const cancelledResults = (caller: Message, callIds: string[]): Message[] =>
  callIds.map((callId, index) => ({
    id: derivedId(caller.id, `${callIds.indexOf(callId) === index ? '' : index}/${callId}`),
    session_id: caller.session_id,
    sequence: caller.sequence,
    role: 'tool_result',
    content: [{ type: 'tool_result', tool_call_id: callId, result: null, error: 'cancelled' }],
    created_at: caller.created_at,
  }))

const derivedId = (messageId: string, what: string): string =>
  toId('message', hash('sha256', `${messageId}/${what}`).slice(0, 32))

/**
 * Plans how to fit a patched conversation into the context. First the tool results of older steps lose their content,
 * oldest first, except results that the model has not answered yet. Then the oldest exchanges are dropped, except the
 * last one. Undefined when the conversation fits or nothing can be cut. A conversation that cannot fit is cut to its
 * minimum. `fixedTokens` is the size of system prompt and tools, `hiddenTokens` the size of a message's hidden content.
 */
export function planCompaction(
  messages: Message[],
  {
    fixedTokens,
    contextTokens,
    hiddenTokens = () => 0,
  }: { fixedTokens: number; contextTokens: number; hiddenTokens?: (message: Message) => number },
): Compaction | undefined {
  const costs = messages.map((message) => estimateMessageTokens(message) + hiddenTokens(message))
  const inputTokensBefore = costs.reduce((sum, cost) => sum + cost, fixedTokens)
  const budget = Math.floor(contextTokens * INPUT_SHARE)
  if (inputTokensBefore <= budget) return undefined
  const portion = Math.max(1, Math.floor(budget * PORTION_SHARE))
  const target = inputTokensBefore - Math.ceil((inputTokensBefore - budget) / portion) * portion

  const cleared = planClearing(messages, costs, inputTokensBefore - target)
  const clearedTokens = inputTokensBefore - cleared.saved
  const dropped =
    clearedTokens <= budget ? undefined : planDropping(messages, cleared.costs, { tokens: clearedTokens, target })
  if (cleared.saved <= 0 && dropped === undefined) return undefined
  const start = dropped?.index ?? 0
  return {
    clearedBefore: cleared.index > start ? sequenceAt(messages, cleared.index) : 0,
    droppedBefore: start > 0 ? sequenceAt(messages, start) : 0,
    inputTokensBefore,
    inputTokensAfter: dropped?.tokens ?? clearedTokens,
  }
}

const sequenceAt = (messages: Message[], index: number): number => messages[index]?.sequence ?? 0

/** Plans which results to clear, whole steps at a time. `index` is the first message after them. */
function planClearing(messages: Message[], costs: number[], needed: number) {
  const lastAnswer = messages.findLastIndex(({ role }) => role === 'agent')
  const after = [...costs]
  let saved = 0
  let index = 0
  for (const [at, message] of messages.entries()) {
    if (message.role === 'tool_result') {
      if (at > lastAnswer) break
      const cleared = clearResult(message)
      const before = costs[at] ?? 0
      const cost = cleared === message ? before : estimateMessageTokens(cleared)
      saved += before - cost
      after[at] = cost
      index = at + 1
    } else if (saved >= needed) {
      break
    }
  }
  return { costs: after, saved, index }
}

/** Finds the first exchange from which the rest fits, else the last exchange. Undefined if dropping saves nothing. */
function planDropping(messages: Message[], costs: number[], { tokens, target }: { tokens: number; target: number }) {
  const [first] = messages
  if (first === undefined) return undefined
  const notice = estimateMessageTokens(leftOutNotice(first))
  let left = tokens
  let best: { index: number; tokens: number } | undefined
  for (const [index, message] of messages.entries()) {
    const withNotice = left + notice
    // Not a message that joined a turn: later readers begin with whole turns.
    const begins = message.role === 'user' && message.turn_id == null
    if (begins && index > 0 && withNotice < tokens) best = { index, tokens: withNotice }
    if (best !== undefined && best.tokens <= target) break
    left -= costs[index] ?? 0
  }
  return best
}

/** Cuts a conversation as planned. If it is cut already, with or without the notice, it stays the same. */
export function applyCompaction(messages: Message[], { clearedBefore, droppedBefore }: Thresholds): Message[] {
  const cleared = indexOf(messages, clearedBefore)
  // The last match, because the notice has the sequence of the message after it.
  const start = droppedBefore === 0 ? -1 : messages.findLastIndex(({ sequence }) => sequence === droppedBefore)
  const kept = messages.map((message, index) =>
    index < cleared && message.role === 'tool_result' ? clearResult(message) : message,
  )
  const first = messages[start]
  return first === undefined ? kept : [leftOutNotice(first), ...kept.slice(start)]
}

/** Finds the first message with this sequence. A patched result has the one of its call, which precedes it. */
function indexOf(messages: Message[], sequence: number): number {
  return sequence === 0
    ? 0
    : Math.max(
        0,
        messages.findIndex((message) => message.sequence === sequence),
      )
}

/**
 * Replaces the content of results with the notice, unless that saves nothing. A result with a secret is always
 * replaced, because the length of the secret is unknown here.
 */
function clearResult(message: Message): Message {
  const cleared = { ...message, content: message.content.flatMap(clearPart) }
  const hasSecret = message.content.some((part) => part.type === 'tool_result' && isRedactedResult(part.result))
  return hasSecret || estimateMessageTokens(cleared) < estimateMessageTokens(message) ? cleared : message
}

function clearPart(part: ContentPart): ContentPart[] {
  if (part.type !== 'tool_result') return []
  const { type, tool_call_id } = part
  const failed = part.error !== undefined && part.error !== null
  return [{ type, tool_call_id, ...(failed ? { result: null, error: CLEARED_RESULT } : { result: CLEARED_RESULT }) }]
}

/**
 * Creates the notice before the first kept message. Needs no data of the dropped messages, which are not read again.
 */
const leftOutNotice = ({ id, session_id, sequence, created_at }: Message): Message => ({
  id: derivedId(id, 'left-out'),
  session_id,
  sequence,
  role: 'user',
  content: [{ type: 'text', text: LEFT_OUT }],
  created_at,
})
