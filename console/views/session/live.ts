import type { Event } from 'agent-session-client'
import { isNotFound } from '../../load.ts'
import { api, sessionOf } from '../../service.ts'
import { type Signal, signal } from '../../ui.ts'
import { type Conversation, createConversation, NOT_SHOWN, turnIdOf } from './conversation.ts'

/** Turns that are loaded at once. */
const TURNS = 20
const EVENTS = 1000
/** Turns that an open session grows to before its older half is forgotten. It can be loaded again. */
const MOST_TURNS = 1000
const DELTAS = ['output.message.delta', 'reason.thinking.delta'] as const
type EventTypes = Event['type'][]

/** A session as it is seen: its newest turns, and everything that happens from then on. */
export type Live = {
  /** The conversation; a new object with each change that is drawn. */
  shown: Signal<{ conversation: Conversation }>
  state: Signal<'loading' | 'live' | 'deleted'>
  error: Signal<unknown>
  hasEarlier: Signal<boolean>
  /** Loads the turns before those that are there. */
  loadEarlier(): Promise<void>
  close(): void
}

/**
 * Opens a session. What has happened is read from the list of events, without deltas; the stream goes on after the last
 * of them. So nothing is missing in between, and an answer that is being written comes with its next delta.
 */
export function openSession(sessionId: string): Live {
  const closed = new AbortController()
  const path = { session_id: sessionId }
  const state = signal<'loading' | 'live' | 'deleted'>('loading')
  const error = signal<unknown>(undefined)
  const hasEarlier = signal(false)
  /** All but deltas, of which the last one of a turn is enough. */
  let events: Event[] = []
  let conversation = createConversation()
  const deltas = new Map<string, Event>()
  const shown = signal({ conversation })

  let frame = 0
  const draw = () => {
    frame = 0
    shown.value = { conversation }
  }
  const take = (event: Event): void => {
    conversation.take(event)
    if ((DELTAS as readonly string[]).includes(event.type)) deltas.set(`${event.type} ${turnIdOf(event)}`, event)
    else events.push(event)
    if (event.type === 'input.message' && conversation.turns.length > MOST_TURNS) forgetHalf()
    // A page that nobody sees draws nothing until it is seen again.
    frame ||= requestAnimationFrame(draw)
  }

  const forgetHalf = (): void => {
    const kept = new Set(conversation.turns.slice(-MOST_TURNS / 2).map(({ id }) => id))
    events = events.slice(events.findIndex((event) => kept.has(turnIdOf(event) ?? '')))
    for (const [key, delta] of deltas) if (!kept.has(turnIdOf(delta) ?? '')) deltas.delete(key)
    conversation = createConversation([...events, ...deltas.values()].sort(bySequence))
    hasEarlier.value = true
  }

  /** Reads the events after one, up to another or the last, without deltas. */
  const readEvents = async (after: string | undefined, until = Number.POSITIVE_INFINITY): Promise<Event[]> => {
    const found: Event[] = []
    const exclude: EventTypes = [...DELTAS, ...NOT_SHOWN]
    for (let since_id = after; ; ) {
      const { data } = await api.listEvents({ path, query: { since_id, exclude, limit: EVENTS } })
      found.push(...data.filter(({ sequence }) => (sequence ?? 0) < until))
      since_id = data.at(-1)?.id
      if (data.length < EVENTS || (data.at(-1)?.sequence ?? 0) >= until) return found
    }
  }

  /** Returns the first event of the oldest of some turns. They are newest first. */
  const readFirst = async (offset: number): Promise<Event | undefined> => {
    const { data } = await api.listTurns({ path, query: { limit: TURNS, offset } })
    hasEarlier.value = data.length === TURNS
    const oldest = data.at(-1)
    if (oldest === undefined) return undefined
    const first = await api.listEvents({ path, query: { turn_id: oldest.id, limit: 1 } })
    return first.data[0]
  }

  const follow = async () => {
    await api.getSession({ path })
    const first = await readFirst(0)
    events = [...(first ? [first] : []), ...(await readEvents(first?.id))]
    conversation = createConversation(events)
    state.value = 'live'
    draw()
    const after = events.at(-1)?.id
    const stream = sessionOf(sessionId).events({ after, exclude: [...NOT_SHOWN], signal: closed.signal })
    for await (const event of stream) take(event)
    if (!closed.signal.aborted) state.value = 'deleted'
  }

  const loadEarlier = async () => {
    const first = await readFirst(conversation.turns.length)
    const [oldest] = events
    if (first === undefined || oldest === undefined) return
    const earlier = [first, ...(await readEvents(first.id, oldest.sequence ?? undefined))]
    events = [...earlier, ...events]
    conversation = createConversation([...events, ...deltas.values()].sort(bySequence))
    draw()
  }

  follow().catch((problem: unknown) => {
    if (closed.signal.aborted) return
    if (isNotFound(problem) && state.value === 'live') state.value = 'deleted'
    else error.value = problem
  })
  return {
    shown,
    state,
    error,
    hasEarlier,
    loadEarlier,
    close: () => {
      closed.abort()
      cancelAnimationFrame(frame)
    },
  }
}

const bySequence = (a: Event, b: Event): number => (a.sequence ?? 0) - (b.sequence ?? 0)
