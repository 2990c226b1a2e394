import type { Event, Takeover, Turn } from 'agent-session-client'
import { isNotFound, isTemporary } from '../../load.ts'
import { abortWhenHidden, untilSeen } from '../../seen.ts'
import { api, sessionOf } from '../../service.ts'
import { type Signal, signal } from '../../ui.ts'
import { bySequence, type Conversation, createConversation, NOT_SHOWN, turnIdOf } from './conversation.ts'
import { noticeTakeovers } from './takeovers.ts'

/** Number of turns loaded at once. */
const TURNS = 20
const EVENTS = 1000
/** Pages of earlier turns that are loaded for a turn which an address names. */
const MAX_PAGES = 20
/** Number of turns above which an open session drops the older half, which can be loaded again. */
const MAX_TURNS = 1000
const DELTAS = ['output.message.delta', 'reason.thinking.delta'] as const
/** Pause before a failed load of a session is repeated. */
const RETRY_MS = 2000
type EventTypes = Event['type'][]

/** Live view of a session: its newest turns, and all later events. */
export type Live = {
  /** The conversation; a new object for each redraw. */
  shown: Signal<{ conversation: Conversation }>
  state: Signal<'loading' | 'live' | 'deleted'>
  error: Signal<unknown>
  hasEarlier: Signal<boolean>
  /** By the ids of the turns that have some. */
  takeovers: Signal<ReadonlyMap<string, Takeover[]>>
  /** False while the service cannot be reached. */
  isConnected: Signal<boolean>
  /** Loads earlier turns. */
  loadEarlier(): Promise<void>
  /** Loads earlier turns until one of them is loaded, or too many are. */
  loadBackTo(turnId: string): Promise<void>
  /** Loads the session unless loaded, and follows it until the returned function is called. */
  start(): () => void
}

/**
 * Opens a session. Past events come from the list of events, without deltas; the stream continues after the last one,
 * so no event is missed. An unfinished answer appears with its next delta.
 */
export function openSession(sessionId: string): Live {
  const path = { session_id: sessionId }
  const state = signal<'loading' | 'live' | 'deleted'>('loading')
  const error = signal<unknown>(undefined)
  const hasEarlier = signal(false)
  const isConnected = signal(true)
  const takeovers = signal<ReadonlyMap<string, Takeover[]>>(new Map())
  const isTakenOver = noticeTakeovers()
  /** All events except deltas; `deltas` has the last one of each turn and type. */
  let events: Event[] = []
  let conversation = createConversation()
  /** Id of the last event taken. */
  let last: string | undefined
  const deltas = new Map<string, Event>()
  const shown = signal({ conversation })

  let isDrawn = true
  const draw = () => {
    isDrawn = true
    shown.value = { conversation }
  }
  const know = (turns: Turn[]): void => {
    const found = turns.flatMap(({ id, takeovers }) => (takeovers ? [[id, takeovers] as const] : []))
    if (found.length > 0) takeovers.value = new Map([...takeovers.value, ...found])
  }
  const lookAt = async (turn_id: string) => know([await api.turns.get({ ...path, turn_id })])
  const take = (event: Event): void => {
    conversation.take(event)
    // The line about it can be missing: the timeline has it, too.
    if (isTakenOver(event)) lookAt(turnIdOf(event) ?? '').catch(() => {})
    last = event.id
    if ((DELTAS as readonly string[]).includes(event.type)) deltas.set(`${event.type} ${turnIdOf(event)}`, event)
    else events.push(event)
    if (event.type === 'input.message' && conversation.turns.length > MAX_TURNS) forgetHalf()
    // A hidden page draws nothing until it is visible again.
    if (isDrawn) requestAnimationFrame(draw)
    isDrawn = false
  }

  const forgetHalf = (): void => {
    const kept = new Set(conversation.turns.slice(-MAX_TURNS / 2).map(({ id }) => id))
    events = events.slice(events.findIndex((event) => kept.has(turnIdOf(event) ?? '')))
    for (const [key, delta] of deltas) if (!kept.has(turnIdOf(delta) ?? '')) deltas.delete(key)
    conversation = createConversation([...events, ...deltas.values()].sort(bySequence))
    hasEarlier.value = true
  }

  /** Reads the events after an id and before a sequence, without deltas. */
  const readEvents = async (after: string | undefined, until = Number.POSITIVE_INFINITY): Promise<Event[]> => {
    const found: Event[] = []
    const exclude: EventTypes = [...DELTAS, ...NOT_SHOWN]
    for (let since_id = after; ; ) {
      const { data } = await api.events.list({ ...path, since_id, exclude, limit: EVENTS })
      found.push(...data.filter(({ sequence }) => (sequence ?? 0) < until))
      since_id = data.at(-1)?.id
      if (data.length < EVENTS || (data.at(-1)?.sequence ?? 0) >= until) return found
    }
  }

  /** Returns the first event of the oldest turn on a page of turns, which are newest first. */
  const readFirst = async (offset: number): Promise<Event | undefined> => {
    const { data } = await api.turns.list({ ...path, limit: TURNS, offset })
    hasEarlier.value = data.length === TURNS
    know(data)
    const oldest = data.at(-1)
    if (oldest === undefined) return undefined
    const first = await api.events.list({ ...path, turn_id: oldest.id, limit: 1 })
    return first.data[0]
  }

  const load = async (signal: AbortSignal) => {
    await api.sessions.get(path)
    const first = await readFirst(0)
    const found = [...(first ? [first] : []), ...(await readEvents(first?.id))]
    if (signal.aborted) return
    events = found
    conversation = createConversation(events)
    for (const event of events) isTakenOver(event)
    last = events.at(-1)?.id
    state.value = 'live'
    error.value = undefined
    draw()
  }

  /** Loads the session, with retries, and follows it until the signal aborts. A hidden page closes its stream. */
  const follow = async (signal: AbortSignal) => {
    while (state.value === 'loading' && !signal.aborted) {
      try {
        await load(signal)
      } catch (problem) {
        if (!isTemporary(problem)) throw problem
        error.value = problem
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }
    while (!signal.aborted) {
      const hidden = abortWhenHidden(signal)
      isConnected.value = true
      const stream = sessionOf(sessionId).events({
        after: last,
        exclude: [...NOT_SHOWN],
        signal: hidden.signal,
        onConnected: (isNow) => {
          isConnected.value = isNow
        },
      })
      for await (const event of stream) take(event)
      if (signal.aborted) return
      isConnected.value = true
      if (!hidden.signal.aborted) {
        state.value = 'deleted'
        return
      }
      await untilSeen(signal)
    }
  }

  const loadEarlier = async () => {
    const first = await readFirst(conversation.turns.filter(({ input }) => input !== undefined).length)
    const [oldest] = events
    if (first === undefined || oldest === undefined) return
    const earlier = [first, ...(await readEvents(first.id, oldest.sequence ?? undefined))]
    events = [...earlier, ...events]
    conversation = createConversation([...events, ...deltas.values()].sort(bySequence))
    draw()
  }

  const loadBackTo = async (turnId: string) => {
    const isLoaded = () => conversation.turns.some(({ id }) => id === turnId)
    for (let page = 0; page < MAX_PAGES && hasEarlier.value && !isLoaded(); page++) await loadEarlier()
  }

  const start = () => {
    const stopped = new AbortController()
    follow(stopped.signal).catch((problem: unknown) => {
      if (stopped.signal.aborted) return
      isConnected.value = true
      if (isNotFound(problem) && state.value === 'live') state.value = 'deleted'
      else error.value = problem
    })
    return () => stopped.abort()
  }
  return { shown, state, error, hasEarlier, isConnected, takeovers, loadEarlier, loadBackTo, start }
}
