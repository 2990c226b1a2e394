import type { ContentPart, Event, Message, RequestedCall, TokenUsage } from 'agent-session-client'

export type CallStatus = 'planned' | 'running' | 'waiting' | 'success' | 'error' | 'timeout' | 'cancelled'

/** Name of the calls by which a tool asks its user. */
export const QUESTION = 'mcp_elicitation'
/** Name of the calls by which a turn asks for more budget. */
export const BUDGET = 'raise_budget'

/** Names for people of calls that are no tool's. */
const TITLES: Record<string, string> = { [QUESTION]: 'Question', [BUDGET]: 'More budget' }

/** Call of a tool, or the question of one. */
export type Call = {
  id: string
  name: string
  title: string
  status: CallStatus
  arguments: Record<string, unknown> | undefined
  /** Kind of request to the client, while the status is `waiting`. */
  kind: RequestedCall['kind'] | undefined
  /** Title of the tool that asks the question. */
  asker: string | undefined
  /** Whether it has asked a question, which is a call of its own. */
  hasAsked: boolean
  result: ContentPart[]
  error: string | undefined
}

/** Parts of a turn, from top to bottom. */
export type Part =
  /** Answer of the model. A new attempt replaces the text of the previous one. */
  | {
      type: 'answer'
      key: string
      thinking: string
      text: string
      isComplete: boolean
      isInterrupted: boolean
      /** Whether the model's output limit cut it off. */
      isTooLong: boolean
    }
  | { type: 'calls'; key: string; calls: Call[] }
  /** Message that joined the running turn. */
  | { type: 'said'; key: string; message: Message }
  /** Failed attempts of one model call: their number, and the last error. `isOver`: another attempt has begun. */
  | { type: 'retry'; key: string; error: string; count: number; isOver: boolean }

export type TurnStatus = 'queued' | 'active' | 'waiting' | 'completed' | 'failed' | 'cancelled'

export type ShownTurn = {
  id: string
  /** Undefined until it is loaded. */
  input: Message | undefined
  status: TurnStatus
  parts: Part[]
  error: string | undefined
  /** Code of the error of a failed turn. */
  errorCode: string | undefined
  /** Whether it summarised the conversation. */
  isSummary: boolean
  usage: TokenUsage | undefined
  costUsd: string | undefined
  durationMs: number | undefined
  /** Grows with each change. */
  version: number
}

export type Conversation = {
  /** In the order of their messages. */
  turns: ShownTurn[]
  /** Takes an event. Repeated events change nothing. */
  take(event: Event): void
}

/** Types that add nothing to a conversation. The last one is large. */
export const NOT_SHOWN = ['session.started', 'session.activated', 'session.idled', 'llm.generation'] as const

/**
 * Folds the events of a session into a conversation. Events arrive in the order of their sequence, and the first ones
 * may be missing.
 */
export function createConversation(events: Iterable<Event> = []): Conversation {
  const turns = new Map<string, ShownTurn>()
  const order: ShownTurn[] = []
  let last = 0
  const turnOf = (id: string): ShownTurn => {
    const known = turns.get(id)
    if (known !== undefined) return known
    const turn: ShownTurn = {
      id,
      input: undefined,
      status: 'queued',
      parts: [],
      error: undefined,
      errorCode: undefined,
      isSummary: false,
      usage: undefined,
      costUsd: undefined,
      durationMs: undefined,
      version: 0,
    }
    turns.set(id, turn)
    return turn
  }
  /** Turns without a loaded message began before all others. */
  const place = (turn: ShownTurn): void => {
    const first = order.findIndex(({ input }) => input !== undefined)
    if (turn.input !== undefined || first < 0) order.push(turn)
    else order.splice(first, 0, turn)
  }
  const take = (event: Event): void => {
    if (typeof event.sequence === 'number') {
      if (event.sequence <= last) return
      last = event.sequence
    }
    const id = turnIdOf(event)
    if (id === undefined) return
    const isNew = !turns.has(id)
    const turn = turnOf(id)
    apply(turn, event)
    if (isNew) place(turn)
    turn.version++
  }
  for (const event of events) take(event)
  return { turns: order, take }
}

/** Returns the id of an event's turn. A message has no context, unless it joined a turn; its own has its id. */
export const turnIdOf = ({ type, context, data }: Event): string | undefined =>
  context?.turn_id ?? (type === 'input.message' ? data.message.id.replace('message_', 'turn_') : undefined)

function apply(turn: ShownTurn, event: Event): void {
  switch (event.type) {
    case 'input.message':
      if (event.context?.turn_id) turn.parts.push({ type: 'said', key: event.id, message: event.data.message })
      else turn.input = event.data.message
      return
    case 'turn.started':
      turn.status = 'active'
      return
    case 'reason.started':
      turn.status = 'active'
      return
    case 'reason.retrying':
      addRetry(turn, event.id, event.data.error)
      return
    case 'reason.thinking.started': {
      const answer = openAnswer(turn, event)
      answer.thinking = ''
      return
    }
    case 'reason.thinking.delta':
      openAnswer(turn, event).thinking = event.data.accumulated
      return
    case 'reason.thinking.completed':
      openAnswer(turn, event).thinking = event.data.thinking
      return
    case 'output.message.started':
      Object.assign(openAnswer(turn, event), { text: '', thinking: '' })
      return
    case 'output.message.delta':
      openAnswer(turn, event).text = event.data.accumulated
      return
    case 'output.message.completed': {
      const answer = openAnswer(turn, event)
      answer.text = textOf(event.data.message.content)
      answer.thinking = event.data.message.thinking ?? answer.thinking
      answer.isComplete = true
      const { metadata } = event.data.message
      answer.isInterrupted = metadata?.interrupted === true
      answer.isTooLong = metadata?.finish_reason === 'length'
      return
    }
    case 'act.started':
      turn.parts.push({ type: 'calls', key: event.id, calls: event.data.tool_calls.map(planned) })
      return
    case 'tool.started': {
      const { tool_call } = event.data
      const change = { status: 'running', kind: undefined, arguments: tool_call.arguments }
      Object.assign(callOf(turn, tool_call.id, tool_call.name), change)
      if (turn.status === 'waiting' && waitingCalls(turn).length === 0) turn.status = 'active'
      return
    }
    case 'tool.call_requested':
      turn.status = 'waiting'
      for (const { id, name, kind, arguments: given } of event.data.tool_calls) {
        const asking = findCall(turn, given.tool_call_id)
        if (asking) asking.hasAsked = true
        Object.assign(callOf(turn, id, name), { status: 'waiting', kind, arguments: given, asker: asking?.title })
      }
      return
    case 'tool.completed': {
      const { tool_call_id, tool_name, status, result, error } = event.data
      const change = { status, kind: undefined, result: result ?? [], error: error ?? undefined }
      Object.assign(callOf(turn, tool_call_id, tool_name), change)
      if (turn.status === 'waiting' && waitingCalls(turn).length === 0) turn.status = 'active'
      return
    }
    case 'session.compacted':
      turn.isSummary = true
      return
    case 'turn.completed':
      end(turn, {
        status: 'completed',
        usage: event.data.usage ?? undefined,
        costUsd: event.data.cost_usd ?? undefined,
        durationMs: event.data.duration_ms ?? undefined,
      })
      return
    case 'turn.failed':
      end(turn, { status: 'failed', error: event.data.error, errorCode: event.data.error_code ?? undefined })
      return
    case 'turn.cancelled':
      end(turn, { status: 'cancelled', error: event.data.reason ?? undefined })
      return
  }
}

/** Counts the failures of a model call, below the answer that it has begun. */
function addRetry(turn: ShownTurn, key: string, error: string): void {
  const known = retryOf(turn)
  const { count } = known ?? { count: 0 }
  const retry: Part = { type: 'retry', key: known?.key ?? key, error, count: count + 1, isOver: false }
  turn.parts = [...turn.parts.filter((part) => part !== known), retry]
}

/** Finds the failures of the current model call: nothing was completed since. */
const retryOf = ({ parts }: ShownTurn): Extract<Part, { type: 'retry' }> | undefined => {
  const start = parts.findLastIndex((part) => part.type === 'calls' || (part.type === 'answer' && part.isComplete))
  return parts.slice(start + 1).find((part) => part.type === 'retry')
}

/** Ends a turn. Removes incomplete answers, which belong to no message, and cancels waiting calls. */
function end(turn: ShownTurn, outcome: Partial<ShownTurn>): void {
  endRetry(turn)
  turn.parts = turn.parts.filter((part) => part.type !== 'answer' || part.isComplete)
  for (const call of waitingCalls(turn)) Object.assign(call, { status: 'cancelled', kind: undefined })
  Object.assign(turn, outcome)
}

function endRetry(turn: ShownTurn): void {
  const retry = retryOf(turn)
  if (retry !== undefined) retry.isOver = true
}

/** Returns the incomplete answer. It is the last part of the turn. */
function openAnswer(turn: ShownTurn, event: Event): Extract<Part, { type: 'answer' }> {
  endRetry(turn)
  const last = turn.parts.findLast(({ type }) => type !== 'retry' && type !== 'said')
  if (last?.type === 'answer' && !last.isComplete) {
    if (turn.parts.at(-1)?.type === 'retry') turn.parts = [...turn.parts.filter((part) => part !== last), last]
    return last
  }
  const answer: Part = {
    type: 'answer',
    key: event.id,
    thinking: '',
    text: '',
    isComplete: false,
    isInterrupted: false,
    isTooLong: false,
  }
  turn.parts.push(answer)
  return answer
}

type Planned = { id: string; name: string; display_name?: string | null }

const planned = ({ id, name, display_name }: Planned): Call => ({
  id,
  name,
  title: TITLES[name] ?? display_name ?? name,
  status: 'planned',
  arguments: undefined,
  kind: undefined,
  asker: undefined,
  hasAsked: false,
  result: [],
  error: undefined,
})

const callsOf = ({ parts }: ShownTurn): Call[] => parts.flatMap((part) => (part.type === 'calls' ? part.calls : []))

/** Finds a call. In turns of earlier releases an id may repeat. */
const findCall = (turn: ShownTurn, id: unknown): Call | undefined => callsOf(turn).findLast((call) => call.id === id)

/** Finds or adds a call, whose start may not be loaded. */
function callOf(turn: ShownTurn, id: string, name: string): Call {
  const found = findCall(turn, id)
  if (found !== undefined) return found
  const call = planned({ id, name })
  turn.parts.push({ type: 'calls', key: `calls ${id}`, calls: [call] })
  return call
}

export const waitingCalls = (turn: ShownTurn): Call[] => callsOf(turn).filter(({ status }) => status === 'waiting')

export const textOf = (content: ContentPart[]): string =>
  content.map((part) => (part.type === 'text' ? part.text : '')).join('')

/** Order of the events of a session. */
export const bySequence = (one: Event, other: Event): number => (one.sequence ?? 0) - (other.sequence ?? 0)
