import type { RequestedCall, Turn } from 'agent-session-client'
import { isNotFound, readPages, useEvery, useLoad } from '../load.ts'
import { CallArguments } from '../parts/call-arguments.ts'
import { useFocusFallback } from '../parts/focus.ts'
import { Page, Problem, Quiet } from '../parts/page.ts'
import { Time } from '../parts/time.ts'
import { link } from '../router.ts'
import { api } from '../service.ts'
import { html, useLayoutEffect, useRef, useState, type VNode } from '../ui.ts'
import { type AskingSession, keyOf, keysOf, standing, type Waiting } from './inbox-cards.ts'
import { QUESTION } from './session/conversation.ts'
import { titleOf } from './session/title.ts'
import { WaitingCall } from './session/waiting-call.ts'

/** Interval between polls of the inbox. */
const LOOK_MS = 5000
const PAGE = 50

/** Calls of all sessions that wait for a person, newest first. Later calls are shown on request. */
export function View(): VNode {
  const [count, setCount] = useState(PAGE)
  const places = useRef(new Map<string, AskingSession>()).current
  // Reads one page more, so that newer calls do not push shown ones out of the result.
  const { value: found, error, refresh } = useLoad(() => readWaiting(count + PAGE, places), [count])
  useEvery(LOOK_MS, refresh)
  const list = useRef<HTMLUListElement>(null)
  const [cards, setCards] = useState<Waiting[]>([])
  const isAsked = useRef(true)
  const latest = found?.slice(0, count) ?? []
  useLayoutEffect(() => {
    if (found === undefined) return
    const isPointedAt = list.current?.matches(':hover') ?? false
    setCards(isAsked.current ? latest : standing(cards, found, isPointedAt).slice(0, count))
    isAsked.current = false
  }, [found])
  const [shown, waiting] = [keysOf(cards), keysOf(found ?? [])]
  const fresh = isAsked.current ? [] : latest.filter((item) => ![...keysOf([item])].every((key) => shown.has(key)))
  const more = () => {
    isAsked.current = true
    setCount(count + PAGE)
  }
  const news = html`<span role="status">${fresh.length > 0 && html`<button type="button" onClick=${() => setCards(latest)}>${fresh.length} new</button>`}</span>`
  return html`<${Page} title="Inbox" actions=${news}>
    <${Problem} error=${error} />
    ${found?.length === 0 && html`<${Quiet}>Nothing waits for a person.<//>`}
    <ul class="cards" aria-live="polite" ref=${list}>${cards.map((item) => html`<${Item} key=${item.turn.id} ...${item} waiting=${waiting} />`)}</ul>
    ${(found?.length ?? 0) > count && html`<button type="button" onClick=${more}>Show more<//>`}
  <//>`
}

function Item({ turn, place, waiting }: Waiting & { waiting: Set<string> }): VNode {
  const { session_id, pending_tool_calls, created_at } = turn
  return html`<li ref=${useFocusFallback()}>
    <h2 dir="auto"><a href=${link('sessions', session_id)}>${place ? titleOf(place.session) : 'Untitled session'}</a></h2>
    <p class="quiet">${place?.agent && html`<span dir="auto">${place.agent}</span> · `}Message of <${Time} at=${created_at} /></p>
    ${pending_tool_calls.map((call) => html`<${Call} key=${keyOf(turn, call)} sessionId=${session_id} call=${call} isOver=${!waiting.has(keyOf(turn, call))} />`)}
  </li>`
}

function Call({ sessionId, call, isOver }: { sessionId: string; call: RequestedCall; isOver: boolean }): VNode {
  const { name, kind } = call
  return html`<section>
    ${
      name !== QUESTION &&
      html`<p>${kind === 'approval' ? 'Asks to run' : 'Asks for the result of'} <code>${name}</code></p>
        <${CallArguments} name=${name} given=${call.arguments} />`
    }
    <${WaitingCall} sessionId=${sessionId} call=${call} isOver=${isOver} />
  </section>`
}

/** Reads the newest waiting turns, in pages, and their sessions unless known. */
async function readWaiting(count: number, places: Map<string, AskingSession>): Promise<Waiting[]> {
  const turns: Turn[] = await readPages((query) => api.turns.listWaitingTurns({ ...query, status: ['waiting'] }), count)
  const waiting = new Set(turns.map(({ session_id }) => session_id))
  for (const id of places.keys()) if (!waiting.has(id)) places.delete(id)
  await Promise.all(
    [...waiting].map(async (id) => {
      const place = places.get(id) ?? (await findAskingSession(id))
      if (place !== undefined) places.set(id, place)
    }),
  )
  return turns.map((turn) => ({ turn, place: places.get(turn.session_id) }))
}

/** Returns undefined for a session deleted meanwhile. */
async function findAskingSession(session_id: string): Promise<AskingSession | undefined> {
  try {
    const session = await api.sessions.get({ session_id })
    const { agent_id } = session
    return { session, agent: agent_id ? (await api.agents.get({ agent_id })).name : undefined }
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}
