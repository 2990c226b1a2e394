import type { Session } from 'agent-session-client'
import { useKeys } from '../../keys.ts'
import { Icon } from '../../parts/icon.ts'
import { Problem } from '../../parts/page.ts'
import { plain } from '../../parts/plain.ts'
import { DraftBadge, SessionBadge, titleOf } from '../../parts/session-title.ts'
import { Skeleton } from '../../parts/skeleton.ts'
import { Time } from '../../parts/time.ts'
import { go, link } from '../../router.ts'
import { html, signal, useEffect, useRef, useState, type VNode } from '../../ui.ts'
import { mayLeave } from '../../unsaved.ts'
import { focusSearch, Search, StatusChoice } from './filters.ts'
import { More, newPlace, useFollowed, useLatest } from './list.ts'
import { type Filter, listFor, placeOf, shownFilter } from './session-list.ts'

/** Width from which the list and a session are side by side. */
const WIDE = matchMedia('(min-width: 1280px)')

export function useWide(): boolean {
  const [isWide, setWide] = useState(WIDE.matches)
  useEffect(() => {
    const look = () => setWide(WIDE.matches)
    WIDE.addEventListener('change', look)
    return () => WIDE.removeEventListener('change', look)
  }, [])
  return isWide
}

/** Session to which the keys j and k have led: its message box does not take the focus. */
export const walkedTo = signal('')

/** List of sessions beside one of them. */
export function Pane({ id }: { id: string }): VNode {
  const filter = shownFilter.value
  const list = listFor(filter)
  useFollowed(list)
  const sessions = useLatest(list)
  const pane = useRef<HTMLElement>(null)
  useEffect(() => {
    list.place.opened = id
    pane.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' })
  }, [list, id, sessions === undefined])
  const step = (by: number) => {
    const at = sessions?.findIndex((session) => session.id === id) ?? -1
    const next = sessions?.[Math.max(0, at + by)]
    if (next === undefined && list.hasMore.value) void list.more()
    if (next === undefined || next.id === id || !mayLeave()) return
    walkedTo.value = next.id
    go(link('sessions', next.id), { replace: true })
  }
  useKeys({
    j: { about: 'Next session', run: () => step(1) },
    k: { about: 'Previous session', run: () => step(-1) },
    '/': { about: 'Search sessions', run: focusSearch },
  })
  const change = (wanted: Filter) => {
    shownFilter.value = wanted
  }
  return html`<aside class="session-pane" aria-label="List of sessions" ref=${pane}>
    <div class="pane-head">
      <h2><a href=${placeOf(filter)}>Sessions</a> <span class="quiet">${list.total.value}</span></h2>
      <a class="button ghost" href=${newPlace(filter)} aria-label="New session" title="New session"><${Icon} name="plus" /></a>
      <${Search} filter=${filter} change=${change} /><${StatusChoice} filter=${filter} change=${change} />
    </div>
    <${Problem} error=${list.error.value} />
    ${sessions === undefined && list.error.value === undefined && html`<${Skeleton} />`}
    ${sessions?.length === 0 && html`<p class="quiet">No session matches.</p>`}
    <ul>${sessions?.map((session) => html`<${Row} key=${session.id} session=${session} isCurrent=${session.id === id} />`)}</ul>
    <${More} list=${list} />
  </aside>`
}

const Row = ({ session, isCurrent }: { session: Session; isCurrent: boolean }): VNode => html`<li>
  <a href=${link('sessions', session.id)} aria-current=${isCurrent ? 'page' : undefined} title=${plain(titleOf(session))}>
    <${SessionBadge} session=${session} isShort />
    <${DraftBadge} tags=${session.tags} isShort />
    <span class="pane-title" dir="auto">${titleOf(session)}</span>
    ${session.is_pinned && html`<${Icon} name="pin" />`}
    <${Time} at=${session.created_at} /></a>
</li>`
