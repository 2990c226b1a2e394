import { type Answer, createAnswer } from './answer.ts'
import type { Connection } from './connection.ts'
import { follow } from './follow.ts'
import type { Api, CreateMessageRequest, Event, InputContentPart } from './generated/index.ts'
import { ENDLESS_PATIENCE, repeated, SOME_PATIENCE } from './retry.ts'
import { createToolRunner, type ToolOptions } from './tools.ts'

export type EventType = Event['type']

export type EventOptions = {
  /** Id of the last event that the caller has. Default: from the beginning. */
  after?: string
  /** Only events of this turn, up to its end. */
  turnId?: string
  types?: EventType[]
  exclude?: EventType[]
  /** Ends the iteration. */
  signal?: AbortSignal
  /** Is told when events come no more, because of a failure, and when they come again. */
  onConnected?: (isConnected: boolean) => void
}

export type SendOptions = ToolOptions &
  Pick<CreateMessageRequest, 'controls' | 'metadata' | 'tags'> & {
    /**
     * While another turn is unfinished: wait for it (the default), fail with 409, or cancel it. A turn that waits for
     * results of tools is cancelled by default, too.
     */
    onBusy?: 'enqueue' | 'reject' | 'interrupt'
    /** Stops following the answer, which then rejects. The turn goes on. */
    signal?: AbortSignal
  }

export type SessionClient = {
  readonly id: string
  /**
   * Yields the session's events, then live ones, in order and each once. Reconnects by itself. Ends when the signal
   * aborts, the session is deleted or `turnId` ends. Throws ApiError where reconnecting cannot help. Types that a later
   * version of the service adds are yielded too, so a `switch` needs a default.
   */
  events(options?: EventOptions): AsyncGenerator<Event, void, undefined>
  /** Posts a message, exactly once and after those sent before it, and follows the turn that answers it. */
  send(content: string | InputContentPart[], options?: SendOptions): Answer
}

const isTurnEnd = (type: string): boolean => (TURN_ENDS as string[]).includes(type)
const TURN_ENDS: EventType[] = ['turn.completed', 'turn.failed', 'turn.cancelled']

/** Returns a new Idempotency-Key. `crypto.randomUUID` is missing on pages without TLS. */
export const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')

export function createSessionClient(id: string, connection: Connection, api: Api): SessionClient {
  const { silenceMs } = connection
  const path = `/v1/sessions/${encodeURIComponent(id)}`
  /** Settles when all messages that were sent have been accepted or refused. */
  let accepted: Promise<unknown> = Promise.resolve()
  const stream = (query: URLSearchParams, after: string | undefined, signal: AbortSignal) => {
    const all = new URLSearchParams(query)
    if (after !== undefined) all.set('since_id', after)
    const init = { headers: { Accept: 'text/event-stream' }, signal }
    return connection.send(connection.request(`${path}/sse?${all}`, init))
  }
  /** Reports whether a turn had ended when the event came that the caller has last: nothing of it would follow. */
  const hasEnded = async (turnId: string | undefined, after: string, signal: AbortSignal | undefined) => {
    if (turnId === undefined) return false
    const path = { session_id: id }
    const query = { since_id: after, turn_id: turnId, types: TURN_ENDS }
    const turn = await repeated(
      (limited) => api.getTurn({ path: { ...path, turn_id: turnId }, signal: limited }),
      ENDLESS_PATIENCE,
      signal,
    )
    if (!turn.finished_at) return false
    const events = (limited: AbortSignal) => api.listEvents({ path, query, signal: limited })
    const { data } = await repeated(events, ENDLESS_PATIENCE, signal)
    return !data.some((event) => turnOf(event) === turnId)
  }
  return {
    id,
    events: async function* ({ after, signal, onConnected, ...filter } = {}) {
      if (after !== undefined && (await hasEnded(filter.turnId, after, signal).catch(unlessAborted(signal)))) return
      const open = (last: string | undefined, inner: AbortSignal) => stream(queryOf(filter), last, inner)
      for await (const event of follow<Event>({ open, after, signal, silenceMs, onConnected })) {
        const isOfTurn = filter.turnId === undefined || turnOf(event) === filter.turnId
        if (isOfTurn && isWanted(event, filter)) yield event
        if (isOfTurn && filter.turnId !== undefined && isTurnEnd(event.type)) return
      }
    },
    send: (content, { onBusy, signal, tools, approve, ...more } = {}) => {
      const message = { content: typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content }
      const init = {
        method: 'POST',
        headers: {
          Accept: 'text/event-stream',
          'Content-Type': 'application/json',
          'Idempotency-Key': newKey(),
        },
        body: JSON.stringify({ message, on_busy: onBusy, ...more }),
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
        runTools: createToolRunner(id, api, { tools, approve }),
        signal,
      })
      accepted = Promise.allSettled([earlier, answer.turnId]).then(() => undefined)
      return answer
    },
  }
}

const aborted = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', resolve)
  })

/** Returns what takes the failure of a request whose signal has aborted for an answer. */
const unlessAborted = (signal: AbortSignal | undefined) => (error: unknown) => {
  if (!signal?.aborted) throw error
  return true
}

type Filter = Pick<EventOptions, 'turnId' | 'types' | 'exclude'>

/** Returns the query of a stream. The end of a turn is always asked for with the turn, because the iteration needs it. */
function queryOf({ turnId, types = [], exclude = [] }: Filter): URLSearchParams {
  const needed = turnId === undefined ? [] : TURN_ENDS
  const query = new URLSearchParams(turnId === undefined ? {} : { turn_id: turnId })
  for (const type of types.length > 0 ? new Set([...types, ...needed]) : []) query.append('types', type)
  for (const type of exclude) if (!needed.includes(type)) query.append('exclude', type)
  return query
}

const isWanted = ({ type }: Event, { types = [], exclude = [] }: Filter): boolean =>
  (types.length === 0 || types.includes(type)) && !exclude.includes(type)

/** Returns the id of an event's turn, which is that of its message with another prefix. */
const turnOf = ({ type, context, data }: Event): string | undefined =>
  type === 'input.message' ? data.message.id.replace('message_', 'turn_') : (context?.turn_id ?? undefined)
