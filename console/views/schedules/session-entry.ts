import { useLoad } from '../../load.ts'
import type { EntryProps } from '../../parts/form.ts'
import { plain } from '../../parts/plain.ts'
import { api } from '../../service.ts'
import { html, useEffect, useState, type VNode } from '../../ui.ts'

const MAX_OFFERED = 20
/** Pause in typing after which sessions are searched. */
const PAUSE_MS = 200
const SESSION_ID = /^session_[0-9a-f]{32}$/

/** Entry of a session's id, which is found by words of its title or of its messages. */
export function SessionEntry({ common, label, value, notes }: EntryProps): VNode {
  const [text, setText] = useState(typeof value === 'string' ? value : '')
  const [search, setSearch] = useState(text)
  useEffect(() => {
    const timer = setTimeout(setSearch, PAUSE_MS, text.trim())
    return () => clearTimeout(timer)
  }, [text])
  const { value: found = [] } = useLoad(async () => {
    if (SESSION_ID.test(search)) return [await api.sessions.get({ session_id: search })]
    return (await api.sessions.list({ limit: MAX_OFFERED, ...(search !== '' && { search }) })).data
  }, [search])
  const titleOf = (session: { title?: string | null; preview?: string | null }) =>
    plain(session.title || session.preview || 'Untitled session')
  const chosen = found.find(({ id }) => id === text.trim())
  return html`<div class="field"><label for=${common.id}>${label}</label>
    <input ...${common} list="session-choices" value=${text} placeholder="Search by title, or paste an id" onInput=${(event: Event) => setText((event.target as HTMLInputElement).value)} />
    <datalist id="session-choices">${found.map((session) => html`<option key=${session.id} value=${session.id}>${titleOf(session)}</option>`)}</datalist>
    ${chosen && html`<small class="clamp" role="status" dir="auto">${titleOf(chosen)}</small>`}
    ${notes}
  </div>`
}
