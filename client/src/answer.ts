import { TurnFailed } from './errors.ts'
import type { ContentPart, Event, Message, RequestedCall } from './generated/types.gen.ts'
import type { ToolOptions, ToolRunner } from './tools.ts'

/** Part of an answer. `step` counts the messages of the turn from 0: a turn that calls tools has several. */
export type AnswerPart =
  /** More of the model's thinking before its message. `text` is all of it so far. */
  | { type: 'thinking'; step: number; delta: string; text: string }
  /** More of a message. `text` is all of it so far. */
  | { type: 'text'; step: number; delta: string; text: string }
  /** The message starts over: discard the text and thinking shown so far. */
  | { type: 'restarted'; step: number }
  /** A whole message. */
  | { type: 'message'; step: number; message: Message }
  /** Call of the message `step`: the service runs it, or it has its result from the service or a client. */
  | ToolPart
  /** Calls without a function in `tools` or `approve`. The turn waits for their results. */
  | { type: 'waiting'; calls: RequestedCall[] }

export type ToolPart = {
  type: 'tool'
  step: number
  id: string
  name: string
  displayName: string | undefined
} & (
  | { status: 'running'; arguments: Record<string, unknown> }
  /** `status`: success, error, timeout or cancelled. */
  | { status: string; result: ContentPart[]; error: string | undefined }
)

export type AnswerOptions = ToolOptions & {
  /** Stops following the answer, which then rejects. The turn continues. */
  signal?: AbortSignal | undefined
  /** Receives each part on arrival, with or without iteration. An error that it throws rejects the answer. */
  onPart?: ((part: AnswerPart) => void) | undefined
}

/**
 * Answer to a message. It is followed even if nobody reads it. It can be iterated once; unread parts of a text are
 * joined. Leaving the loop closes the connection and rejects the promises. Throws TurnFailed for a failed turn, and
 * ApiError for an error that retrying cannot fix.
 */
export type Answer = AsyncIterable<AnswerPart> & {
  /** Id of the answering turn, known as soon as the message is accepted. The turn may still be queued. */
  readonly turnId: Promise<string>
  /** Returns the turn's last message when the turn is complete. */
  message(): Promise<Message>
  /** Returns that message's text. */
  text(): Promise<string>
}

type Source = Pick<AnswerOptions, 'signal' | 'onPart'> & {
  /** Turn to follow, if known. */
  turnId?: string
  follow(signal: AbortSignal): AsyncIterable<Event>
  runTools: ToolRunner
}

export function createAnswer({ turnId: knownId, follow, runTools, signal: outer, onPart }: Source): Answer {
  const leave = new AbortController()
  const signal = outer ? AbortSignal.any([outer, leave.signal]) : leave.signal
  const unread = createQueue()
  const turn = createTurn(knownId)
  const give = (part: AnswerPart) => {
    unread.push(part)
    onPart?.(part)
  }
  const read = async (): Promise<Message> => {
    for await (const event of follow(signal)) {
      if (!turn.take(event)) continue
      for (const part of turn.partsOf(event)) give(part)
      if (event.type === 'tool.call_requested') {
        const { others, done } = await runTools(event.data.tool_calls, await turn.id, signal)
        if (others.length > 0) give({ type: 'waiting', calls: others })
        done.catch((error) => leave.abort(error))
      }
      if (event.type === 'turn.completed') return turn.lastMessage()
      if (event.type === 'turn.failed') throw new TurnFailed(event.data.error_code ?? 'failed', event.data.error)
      if (event.type === 'turn.cancelled') {
        throw new TurnFailed('cancelled', event.data.reason ?? 'The turn was cancelled')
      }
    }
    signal.throwIfAborted()
    throw new TurnFailed('session_deleted', 'The session was deleted')
  }
  const whole = read().finally(() => {
    unread.end()
    leave.abort()
  })
  const turnId = Promise.race([turn.id, whole.then(() => turn.id)])
  // Prevents unhandled rejections when neither promise is awaited.
  for (const promise of [whole, turnId]) promise.catch(() => {})
  return {
    turnId,
    message: () => whole,
    text: async () => textOf(await whole),
    [Symbol.asyncIterator]: async function* () {
      try {
        yield* unread
        await whole
      } finally {
        leave.abort()
      }
    },
  }
}

const textOf = ({ content }: Message): string => content.map((part) => (part.type === 'text' ? part.text : '')).join('')

/** Tracks the state of a turn. If its id is unknown, the first event is its message. */
function createTurn(knownId: string | undefined) {
  // A turn has the id of its message.
  let inputId = knownId?.replace('turn_', 'message_')
  let last: Message | undefined
  let step = 0
  let shown = { thinking: '', text: '' }
  let resolveId = (_id: string) => {}
  const id = new Promise<string>((resolve) => {
    resolveId = resolve
  })
  if (knownId !== undefined) resolveId(knownId)
  const advance = (type: 'thinking' | 'text', to: string): AnswerPart[] => {
    const from = shown[type]
    if (to === from) return []
    const parts = to.startsWith(from) ? [] : restart()
    const delta = to.slice(shown[type].length)
    shown[type] = to
    return [...parts, { type, step, delta, text: to }]
  }
  const restart = (): AnswerPart[] => {
    if (shown.text === '' && shown.thinking === '') return []
    shown = { thinking: '', text: '' }
    return [{ type: 'restarted', step }]
  }
  const complete = (message: Message): AnswerPart[] => {
    const parts: AnswerPart[] = [...advance('text', textOf(message)), { type: 'message', step, message }]
    last = message
    shown = { thinking: '', text: '' }
    step++
    return parts
  }
  return {
    id,
    /** Reports whether an event belongs to this turn. After a reconnect, events of other turns arrive too. */
    take(event: Event): boolean {
      if (event.type !== 'input.message') return event.context?.input_message_id === inputId
      // A message that joined a running turn has that turn's context.
      const id = event.context?.input_message_id ?? event.data.message.id
      inputId ??= id
      resolveId(inputId.replace('message_', 'turn_'))
      return id === inputId
    },
    partsOf(event: Event): AnswerPart[] {
      switch (event.type) {
        case 'reason.thinking.delta':
          return advance('thinking', event.data.accumulated)
        case 'reason.thinking.completed':
          return advance('thinking', event.data.thinking)
        case 'output.message.delta':
          return advance('text', event.data.accumulated)
        case 'output.message.completed':
          return complete(event.data.message)
        case 'output.message.started':
          return restart()
        case 'tool.started': {
          const { id, name, arguments: args } = event.data.tool_call
          return [{ ...toolPart(id, name, event.data.display_name), status: 'running', arguments: args }]
        }
        case 'tool.completed': {
          const { tool_call_id, tool_name, display_name, status, result, error } = event.data
          const outcome = { status, result: result ?? [], error: error ?? undefined }
          return [{ ...toolPart(tool_call_id, tool_name, display_name), ...outcome }]
        }
        default:
          return []
      }
    },
    lastMessage(): Message {
      if (last === undefined) throw new TurnFailed('no_message', 'The turn ended without a message')
      return last
    },
  }
  /** Uses the step of the previous message: a call follows the message that made it. */
  function toolPart(id: string, name: string, displayName: string | null | undefined) {
    return { type: 'tool' as const, step: step - 1, id, name, displayName: displayName ?? undefined }
  }
}

/** Queue of parts. Consecutive texts are joined, so that an unread queue stays small. */
function createQueue() {
  const parts: AnswerPart[] = []
  let isOver = false
  let wake = () => {}
  return {
    push(part: AnswerPart) {
      const before = parts.at(-1)
      if ((part.type === 'text' || part.type === 'thinking') && before?.type === part.type) {
        parts[parts.length - 1] = { ...part, delta: before.delta + part.delta }
      } else parts.push(part)
      wake()
    },
    end() {
      isOver = true
      wake()
    },
    async *[Symbol.asyncIterator](): AsyncGenerator<AnswerPart, void, undefined> {
      for (;;) {
        const part = parts.shift()
        if (part) yield part
        else if (isOver) return
        else {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
      }
    },
  }
}
