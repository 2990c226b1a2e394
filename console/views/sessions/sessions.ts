import { Lazy } from '../../parts/lazy.ts'
import { route } from '../../router.ts'
import { html, type VNode } from '../../ui.ts'
import { List } from './list.ts'
import { NewSession } from './new.ts'
import { Pane, useWide, walkedTo } from './pane.ts'

const loadSession = () => import('../session/session.ts')

/** Sessions at `#/sessions`, one at `#/sessions/<id>` with the list beside it on wide pages, a form at `#/sessions/new`. */
export function View(): VNode {
  const [, id, part] = route.value.path
  const isWide = useWide()
  if (id === undefined) return html`<${List} />`
  if (id === 'new') return html`<${NewSession} />`
  // A timeline needs the whole width.
  const hasPane = isWide && part !== 'turns'
  return html`${hasPane && html`<${Pane} id=${id} />`}<${Lazy} key=${id} title="Session" load=${loadSession} sessionId=${id} isWalked=${walkedTo.value === id} />`
}
