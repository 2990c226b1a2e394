import type { Session } from 'agent-session-client'
import { askText } from '../../parts/dialog.ts'
import type { MenuItem } from '../../parts/menu.ts'
import { titleOf } from '../../parts/session-title.ts'
import { link } from '../../router.ts'
import { api } from '../../service.ts'
import { forgetSession, refreshList } from '../sessions/session-list.ts'

/** Returns the address of a place in the console, for other people. */
export const addressOfPlace = (place: string): string => `${location.href.replace(/#.*/, '')}${place}`

/** Returns an entry that copies a text. Browsers let pages copy over TLS and on localhost only. */
export const copyItem = (label: string, icon: string, text: () => string): MenuItem[] =>
  navigator.clipboard === undefined
    ? []
    : [{ label, icon, run: () => navigator.clipboard.writeText(text()).then(() => 'Copied.') }]

type Done = { onChanged?(): void; onDeleted?(): void }

/** Returns the actions on a session, in lists and on its own page. `others` stand before the deletion. */
export function sessionItems(
  session: Session,
  { onChanged, onDeleted }: Done = {},
  others: MenuItem[] = [],
): MenuItem[] {
  const { id, is_pinned } = session
  const path = { session_id: id }
  const done = async () => {
    onChanged?.()
    await refreshList()
  }
  return [
    {
      label: is_pinned ? 'Unpin' : 'Pin',
      icon: 'pin',
      run: () => (is_pinned ? api.sessions.unpin(path) : api.sessions.pin(path)).then(done),
    },
    { label: 'Rename', icon: 'edit', run: async () => (await rename(session)) && done() },
    ...copyItem('Copy id', 'copy', () => id),
    ...copyItem('Copy link', 'link', () => addressOfPlace(link('sessions', id))),
    ...others,
    {
      label: 'Delete',
      icon: 'trash',
      isDangerous: true,
      question: `Delete “${titleOf(session)}” and everything in it?`,
      run: async () => {
        await api.sessions.delete(path)
        forgetSession(id)
        onDeleted?.()
        await refreshList()
      },
    },
  ]
}

async function rename({ id, title }: Session): Promise<boolean> {
  const question = { title: 'Rename the session', label: 'Title', action: 'Rename', value: title ?? '' }
  const wanted = (await askText(question))?.trim()
  if (!wanted) return false
  await api.sessions.update({ session_id: id, title: wanted })
  return true
}
