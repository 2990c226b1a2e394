import type { RequestedCall, Session, Turn } from 'agent-session-client'
import { isNotFound, readPages, useEvery, useLoad } from '../load.ts'
import { CallArguments } from '../parts/call-arguments.ts'
import { useFocusHeir } from '../parts/focus.ts'
import { Page, Problem, Quiet, Time } from '../parts/page.ts'
import { link } from '../router.ts'
import { api } from '../service.ts'
import { html, useRef, useState, type VNode } from '../ui.ts'
import { QUESTION } from './session/conversation.ts'
import { titleOf } from './session/title.ts'
import { WaitingCall } from './session/waiting-call.ts'

/** Time between two looks at what waits. */
const LOOK_MS = 5000
const PAGE = 50

/** Session with the name of its agent. */
type Place = { session: Session; agent: string | undefined }
type Waiting = { turn: Turn; place: Place | undefined }

/** Everything that waits for a person, over all sessions, newest first. */
export function Inbox(): VNode {
  const [count, setCount] = useState(PAGE)
  const places = useRef(new Map<string, Place>()).current
  const { value: items, error, refresh } = useLoad(() => readWaiting(count, places), [count])
  useEvery(LOOK_MS, refresh)
  return html`<${Page} title="Inbox">
    <${Problem} error=${error} />
    ${items?.length === 0 && html`<${Quiet}>Nothing waits for a person.<//>`}
    <ul class="cards" aria-live="polite">${items?.map((item) => html`<${Item} key=${item.turn.id} ...${item} />`)}</ul>
    ${items?.length === count && html`<button type="button" onClick=${() => setCount(count + PAGE)}>Show more<//>`}
  <//>`
}

function Item({ turn, place }: Waiting): VNode {
  const { session_id, pending_tool_calls, created_at } = turn
  return html`<li ref=${useFocusHeir()}>
    <h2 dir="auto"><a href=${link('sessions', session_id)}>${place ? titleOf(place.session) : 'Untitled session'}</a></h2>
    <p class="quiet">${place?.agent && html`<span dir="auto">${place.agent}</span> · `}Message of <${Time} at=${created_at} /></p>
    ${pending_tool_calls.map((call) => html`<${Call} key=${`${turn.iterations} ${call.id}`} sessionId=${session_id} call=${call} />`)}
  </li>`
}

function Call({ sessionId, call }: { sessionId: string; call: RequestedCall }): VNode {
  const { name, kind } = call
  return html`<section>
    ${
      name !== QUESTION &&
      html`<p>${kind === 'approval' ? 'Asks to run' : 'Asks for the result of'} <code>${name}</code></p>
        <${CallArguments} name=${name} given=${call.arguments} />`
    }
    <${WaitingCall} sessionId=${sessionId} call=${call} />
  </section>`
}

/** Reads the newest turns that wait, in pages, and their sessions as far as they are not known. */
async function readWaiting(count: number, places: Map<string, Place>): Promise<Waiting[]> {
  const turns: Turn[] = await readPages((query) => api.turns.listWaitingTurns(query), count)
  const waiting = new Set(turns.map(({ session_id }) => session_id))
  for (const id of places.keys()) if (!waiting.has(id)) places.delete(id)
  await Promise.all(
    [...waiting].map(async (id) => {
      const place = places.get(id) ?? (await findPlace(id))
      if (place !== undefined) places.set(id, place)
    }),
  )
  return turns.map((turn) => ({ turn, place: places.get(turn.session_id) }))
}

/** A session that was deleted meanwhile is none. */
async function findPlace(session_id: string): Promise<Place | undefined> {
  try {
    const session = await api.sessions.get({ session_id })
    const { agent_id } = session
    return { session, agent: agent_id ? (await api.agents.get({ agent_id })).name : undefined }
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}
