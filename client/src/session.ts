import { type Answer, type AnswerOptions, createAnswer } from './answer.ts'
import type { Connection } from './connection.ts'
import { follow } from './follow.ts'
import type { Operations } from './generated/operations.ts'
import type {
  CancelTurnResponse,
  CreateMessageRequest,
  Event,
  InputContentPart,
  ListMessagesData,
  Message,
} from './generated/types.gen.ts'
import { ENDLESS_PATIENCE, repeated, SOME_PATIENCE } from './retry.ts'
import { createToolRunner } from './tools.ts'

export type EventType = Event['type']

export type EventOptions = {
  /** Id of the last event that the caller has. Default: from the beginning. */
  after?: string
  /** Only events of this turn, up to its end. */
  turn_id?: string
  types?: EventType[]
  exclude?: EventType[]
  /** Ends the iteration. */
  signal?: AbortSignal
  /** Called with false when a failure interrupts the events, and with true when they resume. */
  onConnected?: (isConnected: boolean) => void
}

export type SendOptions = AnswerOptions &
  Pick<CreateMessageRequest, 'controls' | 'metadata' | 'on_busy' | 'tags'> & {
    /**
     * Key under which the message is posted once, for a day and across processes: store it first, and repeat `send`
     * with the same message and key. Default: a new key.
     */
    idempotencyKey?: string | undefined
  }

export type SessionClient = {
  readonly id: string
  /**
   * Yields the session's events, then live ones, in order and each once. Reconnects by itself. Ends when the signal
   * aborts, the session is deleted or `turn_id` ends. Throws ApiError if reconnecting cannot help. Also yields types
   * that later versions of the service add, so a `switch` needs a default.
   */
  events(options?: EventOptions): AsyncGenerator<Event, void, undefined>
  /** Posts a message exactly once, after all earlier ones, and follows the turn that answers it. */
  send(content: string | InputContentPart[], options?: SendOptions): SentAnswer
  /**
   * Follows a turn from its first event, even if another process sent its message. Parts arrive as with `send`, and
   * pending calls are answered.
   */
  answer(turnId: string, options?: AnswerOptions): Answer
  /** Cancels a turn, or all unfinished turns. */
  cancel(turnId?: string): Promise<CancelTurnResponse>
  /** Returns the messages, oldest first. */
  messages(query?: ListMessagesData['query']): Promise<Message[]>
}

/** Answer to a message, and the key under which the message is posted, known before the request goes out. */
export type SentAnswer = Answer & { readonly idempotencyKey: string }

const isTurnEnd = (type: string): boolean => (TURN_ENDS as string[]).includes(type)
const TURN_ENDS: EventType[] = ['turn.completed', 'turn.failed', 'turn.cancelled']

/** Returns a new Idempotency-Key. `crypto.randomUUID` is missing on pages without TLS. */
export const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')

export function createSessionClient(id: string, connection: Connection, api: Operations): SessionClient {
  const { silenceMs } = connection
  const path = `/v1/sessions/${encodeURIComponent(id)}`
  /** Settles when all sent messages have been accepted or refused. */
  let accepted: Promise<unknown> = Promise.resolve()
  const stream = (query: URLSearchParams, after: string | undefined, signal: AbortSignal) => {
    const all = new URLSearchParams(query)
    if (after !== undefined) all.set('since_id', after)
    const init = { headers: { Accept: 'text/event-stream' }, signal }
    return connection.send(connection.request(`${path}/sse?${all}`, init))
  }
  /** Reports whether a turn had ended by the caller's last event, so that no event of it would follow. */
  const hasEnded = async (turnId: string | undefined, after: string, signal: AbortSignal | undefined) => {
    if (turnId === undefined) return false
    const ofTurn = { session_id: id, turn_id: turnId }
    const turn = await repeated((limited) => api.turns.get(ofTurn, { signal: limited }), ENDLESS_PATIENCE, signal)
    if (!turn.finished_at) return false
    const events = (limited: AbortSignal) =>
      api.events.list({ ...ofTurn, since_id: after, types: TURN_ENDS }, { signal: limited })
    const { data } = await repeated(events, ENDLESS_PATIENCE, signal)
    return !data.some((event) => turnOf(event) === turnId)
  }
  return {
    id,
    events: async function* ({ after, signal, onConnected, ...filter } = {}) {
      if (after !== undefined && (await hasEnded(filter.turn_id, after, signal).catch(unlessAborted(signal)))) return
      const open = (last: string | undefined, inner: AbortSignal) => stream(queryOf(filter), last, inner)
      for await (const event of follow<Event>({ open, after, signal, silenceMs, onConnected })) {
        const isOfTurn = filter.turn_id === undefined || turnOf(event) === filter.turn_id
        if (isOfTurn && isWanted(event, filter)) yield event
        if (isOfTurn && filter.turn_id !== undefined && isTurnEnd(event.type)) return
      }
    },
    send: (content, { signal, tools, approve, onPart, idempotencyKey: givenKey, ...more } = {}) => {
      const idempotencyKey = givenKey ?? newKey()
      const message = { content: typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content }
      const init = {
        method: 'POST',
        headers: {
          Accept: 'text/event-stream',
          'Content-Type': 'application/json',
          'Idempotency-Key': idempotencyKey,
        },
        body: JSON.stringify({ message, ...more }),
      }
      const open = (after: string | undefined, inner: AbortSignal) =>
        after === undefined
          ? connection.send(connection.request(`${path}/messages`, { ...init, signal: inner }))
          : stream(new URLSearchParams(), after, inner)
      const earlier = accepted
      const answer = createAnswer({
        follow: async function* (inner) {
          await Promise.race([earlier, aborted(inner)])
          yield* follow<Event>({ open, signal: inner, patience: SOME_PATIENCE, silenceMs })
        },
        runTools: createToolRunner(id, api, { tools, approve, isResumed: givenKey !== undefined }),
        signal,
        onPart,
      })
      accepted = Promise.allSettled([earlier, answer.turnId]).then(() => undefined)
      return { ...answer, idempotencyKey }
    },
    answer: (turnId, { signal, tools, approve, onPart } = {}) => {
      const open = (after: string | undefined, inner: AbortSignal) =>
        stream(new URLSearchParams({ turn_id: turnId }), after, inner)
      return createAnswer({
        turnId,
        follow: (inner) => follow<Event>({ open, signal: inner, silenceMs }),
        runTools: createToolRunner(id, api, { tools, approve, isResumed: true }),
        signal,
        onPart,
      })
    },
    cancel: (turnId) => {
      const which = turnId === undefined ? {} : { turn_id: turnId }
      return repeated((limited) => api.turns.cancel({ session_id: id, ...which }, { signal: limited }), SOME_PATIENCE)
    },
    messages: async (query = {}) => {
      const list = (limited: AbortSignal) => api.messages.list({ session_id: id, ...query }, { signal: limited })
      return (await repeated(list, SOME_PATIENCE)).data
    },
  }
}

const aborted = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', resolve)
  })

/** Returns a handler that ignores the failure of a request if the signal has aborted. */
const unlessAborted = (signal: AbortSignal | undefined) => (error: unknown) => {
  if (!signal?.aborted) throw error
  return true
}

type Filter = Pick<EventOptions, 'turn_id' | 'types' | 'exclude'>

/** Returns the query of a stream. For a turn, it always includes the turn's end, which ends the iteration. */
function queryOf({ turn_id, types = [], exclude = [] }: Filter): URLSearchParams {
  const needed = turn_id === undefined ? [] : TURN_ENDS
  const query = new URLSearchParams(turn_id === undefined ? {} : { turn_id })
  for (const type of types.length > 0 ? new Set([...types, ...needed]) : []) query.append('types', type)
  for (const type of exclude) if (!needed.includes(type)) query.append('exclude', type)
  return query
}

const isWanted = ({ type }: Event, { types = [], exclude = [] }: Filter): boolean =>
  (types.length === 0 || types.includes(type)) && !exclude.includes(type)

/** Returns the id of an event's turn. A message has no context, unless it joined a turn; its own has its id. */
const turnOf = ({ type, context, data }: Event): string | undefined =>
  context?.turn_id ?? (type === 'input.message' ? data.message.id.replace('message_', 'turn_') : undefined)
