import type { Agent } from 'agent-session-client'
import { isTemporary, useLoad } from '../../load.ts'
import { ActionButton, Page, Problem } from '../../parts/page.ts'
import { link, route } from '../../router.ts'
import { api, readAnywhere } from '../../service.ts'
import { html, useMemo, useRef, useState, type VNode } from '../../ui.ts'
import { Databases } from '../contents/databases.ts'
import { Files } from '../contents/files.ts'
import { Storage } from '../contents/storage.ts'
import { TurnView } from '../turn/turn.ts'
import { Chat } from './chat.ts'
import { createDraft } from './composer.ts'
import { openSession } from './live.ts'
import type { ReadingPlace } from './reading-place.ts'
import { titleOf } from './title.ts'

/** Tabs of a session besides the conversation, each at `#/sessions/<id>/<name>`. */
const TABS = [
  { name: 'files', title: 'Files', View: Files },
  { name: 'databases', title: 'Databases', View: Databases },
  { name: 'storage', title: 'Storage', View: Storage },
]

/** One session: its live conversation, and its contents. */
export function View({ sessionId }: { sessionId: string }): VNode {
  const live = useMemo(() => openSession(sessionId), [sessionId])
  const [draft] = useState(() => createDraft(sessionId))
  const place = useRef<ReadingPlace['current']>(undefined)
  // The first message gives the session its title.
  const isEmpty = live.shown.value.conversation.turns.length === 0
  const {
    value: session,
    error,
    reload,
  } = useLoad(
    () =>
      readAnywhere(`/v1/sessions/${encodeURIComponent(sessionId)}`, () => api.sessions.get({ session_id: sessionId })),
    [sessionId, isEmpty],
  )
  const { value: agent } = useLoad(() => findAgent(session?.agent_id), [session?.agent_id])
  const [, , shown, id] = route.value.path
  const tab = TABS.find(({ name }) => name === shown)
  const current = (name: string | undefined) => (name === shown ? 'page' : undefined)
  const rename = async () => {
    const title = prompt('Title of the session', session?.title ?? '')?.trim()
    if (!title) return
    await api.sessions.update({ session_id: sessionId, title })
    reload()
  }
  const actions = html`
    ${agent && html`<span>Agent <a href=${link('agents', agent.id)} dir="auto">${agent.name}</a></span>`}
    ${session && html`<${ActionButton} run=${rename}>Rename<//>`}`
  if (session === undefined && error !== undefined && !isTemporary(error))
    return html`<${Page} title="Session"><${Problem} error=${error} /><//>`
  return html`<${Page} title=${session ? titleOf(session) : 'Session'} actions=${actions}>
    <nav class="tabs" aria-label="Session">
      <a href=${link('sessions', sessionId)} aria-current=${current(undefined)}>Conversation</a>
      ${TABS.map(
        ({ name, title }) =>
          html`<a key=${name} href=${link('sessions', sessionId, name)} aria-current=${current(name)}>${title}</a>`,
      )}
    </nav>
    <${Problem} error=${error} />
    ${shown === 'turns' && id !== undefined && html`<${TurnView} key=${id} sessionId=${sessionId} turnId=${id} />`}
    ${tab && html`<${tab.View} sessionId=${sessionId} />`}
    ${shown === undefined && html`<${Chat} sessionId=${sessionId} live=${live} draft=${draft} place=${place} about=${agent?.description} />`}
  <//>`
}

async function findAgent(agent_id: string | null | undefined): Promise<Agent | undefined> {
  return agent_id ? api.agents.get({ agent_id }) : undefined
}
