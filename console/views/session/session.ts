import type { Agent, LlmModel, Session } from 'agent-session-client'
import { isTemporary, useLoad } from '../../load.ts'
import { Page, Problem } from '../../parts/page.ts'
import { SessionBadge, titleOf } from '../../parts/session-title.ts'
import { link, route } from '../../router.ts'
import { api, readAnywhere } from '../../service.ts'
import { computed, html, useMemo, useRef, useState, type VNode } from '../../ui.ts'
import { approvals } from '../../waiting.ts'
import { Databases } from '../contents/databases.ts'
import { Files } from '../contents/files.ts'
import { Storage } from '../contents/storage.ts'
import { placeOf, shownFilter } from '../sessions/session-list.ts'
import { TurnView } from '../turn/turn.ts'
import { Chat } from './chat.ts'
import { createDraft } from './composer.ts'
import { factsOf, HeadActions } from './head.ts'
import { type Live, openSession } from './live.ts'
import type { ReadingPlace } from './reading-place.ts'

/** Tabs of a session besides the conversation, each at `#/sessions/<id>/<name>`. */
const TABS = [
  { name: 'files', title: 'Files', View: Files },
  { name: 'databases', title: 'Databases', View: Databases },
  { name: 'storage', title: 'Storage', View: Storage },
]

type Props = { sessionId: string; isWalked?: boolean }

/** One session: its live conversation, and its contents. */
export function View({ sessionId, isWalked = false }: Props): VNode {
  const live = useMemo(() => openSession(sessionId), [sessionId])
  const [draft] = useState(() => createDraft(sessionId))
  const place = useRef<ReadingPlace['current']>(placeIn(route.value.query))
  const { session, error, reload, agent, model } = useSession(sessionId, live)
  const [, , shown, id] = route.value.path
  const tab = TABS.find(({ name }) => name === shown)
  const current = (name: string | undefined) => (name === shown ? 'page' : undefined)
  const back = { title: 'Sessions', href: placeOf(shownFilter.value) }
  if (session === undefined && error !== undefined && !isTemporary(error))
    return html`<${Page} title="Session" back=${back}><${Problem} error=${error} /><//>`
  return html`<${Page} title=${session ? titleOf(session) : 'Session'} back=${back}
    badge=${session && html`<${SessionBadge} session=${session} />`} facts=${session && factsOf({ session, agent, model })}
    kind=${`session-page ${shown === undefined ? 'talk' : ''}`} actions=${session && html`<${HeadActions} session=${session} reload=${reload} />`}>
    <nav class="tabs session-tabs" aria-label="Session">
      <a href=${link('sessions', sessionId)} aria-current=${current(undefined)}>Conversation</a>
      ${TABS.map(
        ({ name, title }) =>
          html`<a key=${name} href=${link('sessions', sessionId, name)} aria-current=${current(name)}>${title}</a>`,
      )}
    </nav>
    <${Problem} error=${error} />
    ${shown === 'turns' && id !== undefined && html`<${TurnView} key=${id} sessionId=${sessionId} turnId=${id} />`}
    ${tab && html`<${tab.View} sessionId=${sessionId} />`}
    ${shown === undefined && html`<${Chat} sessionId=${sessionId} session=${session} agent=${agent} live=${live} draft=${draft} place=${place} isWalked=${isWalked} />`}
  <//>`
}

/** Distance of a turn that the address names from the top of the window. */
const TOP_PX = 80

/** Returns the place of the turn that the address names. */
function placeIn(query: URLSearchParams): ReadingPlace['current'] {
  const turnId = query.get('turn')
  return turnId === null ? undefined : { turnId, top: TOP_PX }
}

/** Reads a session again whenever the state of a turn changes, with its agent and its model. */
function useSession(session_id: string, live: Live) {
  // The first message gives the session its title, and each turn changes its status and cost.
  const turns = useMemo(
    () => computed(() => live.shown.value.conversation.turns.map(({ status }) => status).join(' ')),
    [live],
  )
  const {
    value: session,
    error,
    reload,
  } = useLoad(
    () => readAnywhere(`/v1/sessions/${encodeURIComponent(session_id)}`, () => api.sessions.get({ session_id })),
    [session_id, turns.value, approvals.value],
  )
  const { value: agent } = useLoad(() => findAgent(session), [session?.agent_id])
  const modelId = session?.model_id ?? agent?.default_model_id
  const { value: model } = useLoad(() => findModel(modelId), [modelId])
  return { session, error, reload, agent, model }
}

async function findAgent(session: Session | undefined): Promise<Agent | undefined> {
  return session?.agent_id ? api.agents.get({ agent_id: session.agent_id }) : undefined
}

async function findModel(id: string | null | undefined): Promise<LlmModel | undefined> {
  return id ? api.models.get({ id }) : undefined
}
