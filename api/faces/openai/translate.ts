import { type TokenUsage, textOf } from '../../../contract/messages.ts'
import { QUESTION_TOOL, type RequestedCall } from '../../../contract/turns.ts'
import type { Frame, Translation, TurnEvent } from '../events.ts'
import { createSentText } from '../sent-text.ts'

export type Usage = { prompt_tokens: number; completion_tokens: number; total_tokens: number }

export function usageOf(usage: TokenUsage | null | undefined): Usage {
  const [prompt_tokens, completion_tokens] = [usage?.input_tokens ?? 0, usage?.output_tokens ?? 0]
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens }
}

/** Part of an answer. `finish` or `error` is the last one. */
export type Piece =
  | { type: 'content'; text: string }
  | { type: 'reasoning'; text: string }
  | { type: 'tool_call'; id: string; name: string; arguments: string }
  | { type: 'finish'; reason: string; usage: Usage }
  | { type: 'error'; message: string; code: string }

export type PieceOptions = {
  /** Sends text as it arrives. An attempt that begins anew then continues what was sent, or ends the answer. */
  streamsText: boolean
  /** Returns the id of a call as the client gets it. */
  callId: (id: string) => string
  /** Address at which calls that the client cannot answer here are answered. */
  answersAt: string
}

const CHANGED =
  'The answer began anew with other text after a failure, so this stream has only a part of it; ask again without text=streamed'

/** Reads the pieces of an answer from the events of one turn. */
export function createPieces({ streamsText, callId, answersAt }: PieceOptions): Translation<Piece> {
  const usage = usageOf(undefined)
  const [text, thoughts] = [createSentText(), createSentText()]
  let hasContent = false
  let isFirstOfStep = true
  let isOver = false

  const say = (text: string | undefined): Piece[] => {
    if (text === undefined) return fail(CHANGED, 'text_changed')
    if (text === '') return []
    // Texts of several steps are paragraphs of one answer.
    const gap = isFirstOfStep && hasContent ? '\n\n' : ''
    hasContent = true
    isFirstOfStep = false
    return [{ type: 'content', text: gap + text }]
  }
  const finish = (reason: string): Piece[] => {
    isOver = true
    return [{ type: 'finish', reason, usage }]
  }
  const fail = (message: string, code: string): Piece[] => {
    isOver = true
    return [{ type: 'error', message, code }]
  }
  /** Leaves out the thoughts of an attempt that thinks otherwise than the one before. */
  const think = (added: string | undefined): Piece[] => (added ? [{ type: 'reasoning', text: added }] : [])
  const endStep = (): void => {
    text.reset()
    thoughts.reset()
    isFirstOfStep = true
  }
  const ask = (calls: RequestedCall[]): Piece[] => {
    const isForClient = ({ kind, name }: RequestedCall) => kind === 'client_tool' && name !== QUESTION_TOOL
    const tools = calls.filter(isForClient).map((call) => toolCall(call, callId))
    isFirstOfStep = true
    const questions = calls.filter((call) => !isForClient(call)).flatMap((call) => say(sentenceOf(call, answersAt)))
    return [...questions, ...tools, ...finish(tools.length > 0 ? 'tool_calls' : 'stop')]
  }
  const complete = ({ data }: Extract<TurnEvent, { type: 'output.message.completed' }>): Piece[] => {
    const used = usageOf(data.usage)
    for (const key of Object.keys(usage) as (keyof Usage)[]) usage[key] += used[key]
    const { thinking, content, metadata } = data.message
    // The model answers again: only the last answer fits the turn's schema.
    if (!streamsText && metadata?.output_error !== undefined) return []
    const rest = say(text.complete(textOf(content)))
    endStep()
    return !streamsText && thinking ? [{ type: 'reasoning', text: `${thinking}\n` }, ...rest] : rest
  }

  const event = (event: TurnEvent): Piece[] => {
    switch (event.type) {
      case 'reason.thinking.delta':
        return streamsText ? think(thoughts.grow(event.data.accumulated)) : []
      case 'output.message.delta':
        return streamsText ? say(text.grow(event.data.accumulated)) : []
      case 'output.message.completed':
        return complete(event)
      case 'act.started':
        return event.data.tool_calls
          .filter(({ policy }) => policy === 'auto' || policy == null)
          .map(({ name, display_name }) => ({ type: 'reasoning', text: `Uses ${display_name ?? name}.\n` }))
      case 'tool.call_requested':
        return ask(event.data.tool_calls)
      case 'turn.completed':
        return finish(finishReasonOf(event.data.finish_reason))
      case 'turn.cancelled':
        return finish('stop')
      case 'turn.failed':
        return fail(event.data.error, event.data.error_code ?? 'internal_error')
      default:
        return []
    }
  }
  return {
    begin: () => [],
    event,
    pause: () => finish('stop'),
    get isOver() {
      return isOver
    },
  }
}

const finishReasonOf = (reason: string | null | undefined): string =>
  reason === 'length' || reason === 'content_filter' ? reason : 'stop'

const toolCall = ({ id, name, arguments: args }: RequestedCall, callId: PieceOptions['callId']): Piece => ({
  type: 'tool_call',
  id: callId(id),
  name,
  arguments: JSON.stringify(args),
})

/** Puts a call that a client of this protocol has no means for into words. */
function sentenceOf({ name, kind, arguments: args }: RequestedCall, answersAt: string): string {
  if (kind === 'approval') {
    const given = JSON.stringify(args).slice(0, 1000)
    return `Approval is needed for ${name} with ${given}. Answer "approve" or "deny", or use ${answersAt}.`
  }
  return `A tool asks: ${typeof args.message === 'string' ? args.message : name} Answer at ${answersAt}.`
}

/** Returns an answer that is known already. */
export const createRecital = (pieces: Piece[]): Translation<Piece> => ({
  begin: () => pieces,
  event: () => [],
  pause: () => [],
  isOver: true,
})

/** Fields that all chunks of an answer have in common, and its whole. */
export type Head = { id: string; created: number; model: string }

/** Turns the pieces of an answer into chunks. */
export function inChunks(pieces: Translation<Piece>, head: Head, includesUsage: boolean): Translation<Frame> {
  let calls = 0
  const frame = (chunk: object): Frame => ({ line: JSON.stringify(chunk) })
  const chunk = (delta: object, finish_reason: string | null = null): Frame =>
    frame({
      ...{ id: head.id, object: 'chat.completion.chunk', created: head.created, model: head.model },
      choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    })
  const framesOf = (piece: Piece): Frame[] => {
    switch (piece.type) {
      case 'content':
        return [chunk({ content: piece.text })]
      case 'reasoning':
        return [chunk({ reasoning_content: piece.text })]
      case 'tool_call': {
        const index = calls++
        const { id, name } = piece
        return [
          chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
          chunk({ tool_calls: [{ index, function: { arguments: piece.arguments } }] }),
        ]
      }
      case 'finish': {
        const usage = {
          id: head.id,
          object: 'chat.completion.chunk',
          created: head.created,
          model: head.model,
          choices: [],
        }
        const last = includesUsage ? [frame({ ...usage, usage: piece.usage })] : []
        return [chunk({}, piece.reason), ...last, { line: '[DONE]' }]
      }
      case 'error':
        return [frame({ error: errorOf(piece) })]
    }
  }
  return {
    begin: () => [chunk({ role: 'assistant', content: '' }), ...pieces.begin().flatMap(framesOf)],
    event: (event) => pieces.event(event).flatMap(framesOf),
    pause: () => pieces.pause().flatMap(framesOf),
    get isOver() {
      return pieces.isOver
    },
  }
}

/** Presents the failure of a turn. */
export const errorOf = ({ message, code }: Extract<Piece, { type: 'error' }>) => ({
  message,
  type: 'server_error',
  param: null,
  code,
})

/** Joins the pieces of a complete answer. */
export function inOne(pieces: Piece[], head: Head): object {
  const join = (type: 'content' | 'reasoning') =>
    pieces.map((piece) => (piece.type === type ? piece.text : '')).join('')
  const tool_calls = pieces.flatMap((piece) =>
    piece.type === 'tool_call'
      ? [{ id: piece.id, type: 'function', function: { name: piece.name, arguments: piece.arguments } }]
      : [],
  )
  const [content, reasoning] = [join('content'), join('reasoning')]
  const message = {
    role: 'assistant',
    content: content === '' && tool_calls.length > 0 ? null : content,
    refusal: null,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(tool_calls.length === 0 ? {} : { tool_calls }),
  }
  const end = pieces.find((piece) => piece.type === 'finish')
  return {
    ...{ id: head.id, object: 'chat.completion', created: head.created, model: head.model },
    choices: [{ index: 0, message, logprobs: null, finish_reason: end?.reason ?? 'stop' }],
    usage: end?.usage ?? usageOf(undefined),
  }
}
