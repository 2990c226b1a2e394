import type { Session } from 'agent-session-client'
import { api } from '../service.ts'
import { html, type VNode } from '../ui.ts'
import { plain } from './plain.ts'
import { type Choice, SearchSelect, type SelectProps } from './search-select.ts'
import { titleOf } from './session-title.ts'
import { relativeTime } from './time.ts'

const SESSION_ID = /^session_[0-9a-f]{32}$/

const read = async (id: string): Promise<Session> => api.sessions.get({ session_id: id })

/** Returns a session's title or first message. Many begin alike, so its age tells them apart. */
const nameOf = (session: Session): string =>
  `${plain(titleOf(session))} · ${relativeTime(Date.parse(session.created_at), Date.now())}`

async function find(search: string, limit: number): Promise<Choice[]> {
  const sessions = SESSION_ID.test(search)
    ? [await read(search)]
    : (await api.sessions.list({ limit, ...(search !== '' && { search }) })).data
  return sessions.map((session) => ({ id: session.id, name: nameOf(session) }))
}

/** Choice of a session, which is found by words of its title or messages, or by its id. */
export const SessionSelect = (props: SelectProps): VNode =>
  html`<${SearchSelect} one="session" find=${find} nameOf=${async (id: string) => nameOf(await read(id))} ...${props} />`
