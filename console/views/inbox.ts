import type { RequestedCall, Session, Turn } from 'agent-session-client'
import { isNotFound, readPages, useEvery, useLoad } from '../load.ts'
import { LongText } from '../parts/long-text.ts'
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

type Waiting = { turn: Turn; session: Session | undefined }

/** Everything that waits for a person, over all sessions, newest first. */
export function Inbox(): VNode {
  const [count, setCount] = useState(PAGE)
  const sessions = useRef(new Map<string, Session>()).current
  const { value: items, error, refresh } = useLoad(() => readWaiting(count, sessions), [count])
  useEvery(LOOK_MS, refresh)
  return html`<${Page} title="Inbox">
    <${Problem} error=${error} />
    ${items?.length === 0 && html`<${Quiet}>Nothing waits for a person.<//>`}
    <ul class="cards" aria-live="polite">${items?.map((item) => html`<${Item} key=${item.turn.id} ...${item} />`)}</ul>
    ${items?.length === count && html`<button type="button" onClick=${() => setCount(count + PAGE)}>Show more<//>`}
  <//>`
}

function Item({ turn, session }: Waiting): VNode {
  const { session_id, pending_tool_calls, created_at } = turn
  return html`<li>
    <h2 dir="auto"><a href=${link('sessions', session_id)}>${session ? titleOf(session) : 'Untitled session'}</a></h2>
    <p class="quiet">Started <${Time} at=${created_at} /></p>
    ${pending_tool_calls.map((call) => html`<${Call} key=${`${turn.iterations} ${call.id}`} sessionId=${session_id} call=${call} />`)}
  </li>`
}

function Call({ sessionId, call }: { sessionId: string; call: RequestedCall }): VNode {
  const { name, kind } = call
  return html`<section>
    ${
      name !== QUESTION &&
      html`<p>${kind === 'approval' ? 'Asks to run' : 'Asks for the result of'} <code>${name}</code></p>
        <${LongText} text=${JSON.stringify(call.arguments, null, 2)} label=${`Arguments of ${name}`} />`
    }
    <${WaitingCall} sessionId=${sessionId} call=${call} />
  </section>`
}

/** Reads the newest turns that wait, in pages, and their sessions as far as they are not known. */
async function readWaiting(count: number, sessions: Map<string, Session>): Promise<Waiting[]> {
  const turns: Turn[] = await readPages((query) => api.listWaitingTurns({ query }), count)
  const waiting = new Set(turns.map(({ session_id }) => session_id))
  for (const id of sessions.keys()) if (!waiting.has(id)) sessions.delete(id)
  await Promise.all(
    [...waiting].map(async (id) => {
      const session = sessions.get(id) ?? (await findSession(id))
      if (session !== undefined) sessions.set(id, session)
    }),
  )
  return turns.map((turn) => ({ turn, session: sessions.get(turn.session_id) }))
}

/** A session that was deleted meanwhile is none. */
const findSession = (session_id: string): Promise<Session | undefined> =>
  api.getSession({ path: { session_id } }).catch((error: unknown) => {
    if (isNotFound(error)) return undefined
    throw error
  })
