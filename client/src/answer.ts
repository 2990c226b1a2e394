import { TurnFailed } from './errors.ts'
import type { Event, Message, RequestedCall } from './generated/index.ts'
import type { ToolRunner } from './tools.ts'

/** Part of an answer. `step` counts the messages of the turn from 0: a turn that calls tools has several. */
export type AnswerPart =
  /** More of a message. `text` is all of it so far. */
  | { type: 'text'; step: number; delta: string; text: string }
  /** The message begins anew: what was shown of it is to be replaced by what follows. */
  | { type: 'restarted'; step: number }
  /** A whole message. */
  | { type: 'message'; step: number; message: Message }
  /** Calls without a function in `tools` or `approve`. The turn waits for their results. */
  | { type: 'waiting'; calls: RequestedCall[] }

/**
 * Answer to a message. It is followed whether it is read or not. It can be iterated once; parts of a text that are not
 * read in time are joined. Leaving the loop closes the connection, and the promises reject then. A failed turn throws
 * TurnFailed, an answer of the service that no repetition will change ApiError.
 */
export type Answer = AsyncIterable<AnswerPart> & {
  /** Turn that answers, known as soon as the message is accepted. It may wait in the queue. */
  readonly turnId: Promise<string>
  /** Returns the turn's last message when the turn is complete. */
  message(): Promise<Message>
  /** Returns that message's text. */
  text(): Promise<string>
}

type Source = {
  follow(signal: AbortSignal): AsyncIterable<Event>
  runTools: ToolRunner
  signal: AbortSignal | undefined
}

export function createAnswer({ follow, runTools, signal: outer }: Source): Answer {
  const leave = new AbortController()
  const signal = outer ? AbortSignal.any([outer, leave.signal]) : leave.signal
  const unread = createQueue()
  const turn = createTurn()
  const read = async (): Promise<Message> => {
    for await (const event of follow(signal)) {
      if (!turn.take(event)) continue
      for (const part of turn.partsOf(event)) unread.push(part)
      if (event.type === 'tool.call_requested') {
        const { others, done } = runTools(event.data.tool_calls, signal)
        if (others.length > 0) unread.push({ type: 'waiting', calls: others })
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
  // Whoever does not ask is not told.
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

/** Keeps what is known of the turn that answers a message. Its first event is that message. */
function createTurn() {
  let inputId: string | undefined
  let last: Message | undefined
  let step = 0
  let text = ''
  let tellId = (_id: string) => {}
  const id = new Promise<string>((resolve) => {
    tellId = resolve
  })
  const advance = (to: string): AnswerPart[] => {
    if (to === text) return []
    const restart: AnswerPart[] = to.startsWith(text) ? [] : [{ type: 'restarted', step }]
    const delta = restart.length > 0 ? to : to.slice(text.length)
    text = to
    return [...restart, { type: 'text', step, delta, text }]
  }
  const complete = (message: Message): AnswerPart[] => {
    const parts: AnswerPart[] = [...advance(textOf(message)), { type: 'message', step, message }]
    last = message
    text = ''
    step++
    return parts
  }
  return {
    id,
    /** Reports whether an event is of this turn. Those of others come after a reconnect. */
    take(event: Event): boolean {
      if (event.type === 'input.message') {
        inputId ??= event.data.message.id
        // A turn has the id of its message.
        tellId(inputId.replace('message_', 'turn_'))
        return event.data.message.id === inputId
      }
      return event.context?.input_message_id === inputId
    },
    partsOf(event: Event): AnswerPart[] {
      if (event.type === 'output.message.delta') return advance(event.data.accumulated)
      if (event.type === 'output.message.completed') return complete(event.data.message)
      if (event.type !== 'output.message.started' || text === '') return []
      text = ''
      return [{ type: 'restarted', step }]
    },
    lastMessage(): Message {
      if (last === undefined) throw new TurnFailed('no_message', 'The turn ended without a message')
      return last
    },
  }
}

/** Queue of parts. Texts that follow each other are joined, so that what nobody reads stays small. */
function createQueue() {
  const parts: AnswerPart[] = []
  let isOver = false
  let wake = () => {}
  return {
    push(part: AnswerPart) {
      const before = parts.at(-1)
      if (part.type === 'text' && before?.type === 'text') {
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
