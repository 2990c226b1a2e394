import type { Session } from 'agent-session-client'
import { useKeys } from '../../keys.ts'
import { useEvery } from '../../load.ts'
import { useAgentNames } from '../../parts/agent-select.ts'
import { commandFor } from '../../parts/command.ts'
import { costOf } from '../../parts/cost.ts'
import { durationOf } from '../../parts/duration.ts'
import { Empty } from '../../parts/empty.ts'
import { Icon } from '../../parts/icon.ts'
import { Menu } from '../../parts/menu.ts'
import { ActionButton, Page, Problem } from '../../parts/page.ts'
import { plain } from '../../parts/plain.ts'
import { DraftBadge, SessionBadge, titleOf } from '../../parts/session-title.ts'
import { type Column, Table } from '../../parts/table.ts'
import { Time } from '../../parts/time.ts'
import { go, link, route } from '../../router.ts'
import { serviceNow } from '../../service.ts'
import { html, useEffect, useLayoutEffect, useRef, type VNode } from '../../ui.ts'
import { sessionItems } from '../session/session-menu.ts'
import { Filters, focusSearch } from './filters.ts'
import {
  ALL,
  type Filter,
  filterOf,
  isFiltered,
  listFor,
  placeOf,
  type SessionList,
  shownFilter,
} from './session-list.ts'

/** Interval between reads of the list. */
const LOOK_MS = 5000

/** Keeps a list up to date while it is shown. */
export function useFollowed(list: SessionList): void {
  useEffect(() => {
    void list.refresh()
  }, [list])
  useEvery(LOOK_MS, () => void list.refresh())
}

/** Sessions that match the filter in the address. */
export function List(): VNode {
  const filter = filterOf(route.value.query)
  const list = listFor(filter)
  useFollowed(list)
  useEffect(() => {
    shownFilter.value = filter
  }, [placeOf(filter)])
  usePlace(list)
  useKeys({
    j: { about: 'Next session', run: () => step(list, 1) },
    k: { about: 'Previous session', run: () => step(list, -1) },
    Enter: { about: 'Choose a session, then open it', run: () => step(list, 0) },
    '/': { about: 'Search sessions', run: focusSearch },
  })
  const change = (wanted: Filter) => go(placeOf(wanted), { replace: true })
  const create = html`<a class="button primary" href=${newPlace(filter)}><${Icon} name="plus" />New session</a>`
  const sessions = list.sessions.value
  const isEmpty = sessions?.length === 0 && !isFiltered(filter)
  return html`<${Page} title="Sessions" badge=${list.total.value && html`<span class="quiet total">${list.total.value}</span>`} actions=${!isEmpty && create}>
    ${!isEmpty && html`<${Filters} filter=${filter} change=${change} />`}
    <${Problem} error=${list.error.value} />
    ${isEmpty ? html`<${NoSessions} create=${create} />` : html`<${Rows} list=${list} change=${change} />`}
  <//>`
}

/** Returns the sessions of a list. Until they are loaded, the sessions of the list before it stay. */
export function useLatest({ sessions }: SessionList): Session[] | undefined {
  const latest = useRef(sessions.value)
  latest.current = sessions.value ?? latest.current
  return latest.current
}

export const newPlace = ({ agent }: Filter): string =>
  `${link('sessions', 'new')}${agent && `?agent=${encodeURIComponent(agent)}`}`

function NoSessions({ create }: { create: VNode }): VNode {
  const code = commandFor('/v1/sessions', { title: 'A first session' })
  return html`<${Empty} icon="session" title="No sessions yet" action=${create} code=${code}
    about="A session is a conversation with an agent. It keeps its messages, files and data, and goes on where it was after any restart." />`
}

function Rows({ list, change }: { list: SessionList; change(filter: Filter): void }): VNode | null {
  const sessions = useLatest(list)
  const nameOf = useAgentNames(sessions?.map(({ agent_id }) => agent_id) ?? [])
  if (sessions === undefined && list.error.value !== undefined) return null
  const columns: Column<Session>[] = [
    { title: 'Session', cell: (session) => html`<${Name} session=${session} />` },
    {
      title: 'Agent',
      cell: ({ agent_id }) => agent_id && html`<span class="clipped" dir="auto">${nameOf(agent_id)}</span>`,
    },
    { title: 'Duration', isNumber: true, isMinor: true, cell: lengthOf },
    {
      title: 'Cost',
      isNumber: true,
      cell: ({ cost_usd, status }) => (status === 'started' ? '' : costOf(cost_usd)),
    },
    { title: 'Started', isNumber: true, cell: ({ created_at }) => html`<${Time} at=${created_at} />` },
  ]
  const none = html`<p class="quiet">No session matches. <button type="button" class="plain" onClick=${() => change(ALL)}>Show all sessions</button></p>`
  return html`<div class="session-list">
    <${Table} items=${sessions} keyOf=${({ id }: Session) => id} columns=${columns} none=${none}
      actions=${(session: Session) => html`<${Menu} label=${`Actions for ${titleOf(session)}`} items=${sessionItems(session)} />`} />
    <${More} list=${list} />
  </div>`
}

/** Returns the time from the first message to the end of the last turn, or to now while a turn is unfinished. */
function lengthOf({ status, started_at, finished_at }: Session): string {
  if (!started_at) return ''
  const end = status === 'idle' && finished_at ? Date.parse(finished_at) : serviceNow()
  return durationOf(Math.max(0, end - Date.parse(started_at)))
}

/** Button that loads further sessions. */
export function More({ list }: { list: SessionList }): VNode | false {
  return (
    list.hasMore.value &&
    html`<div class="actions more"><${ActionButton} run=${list.more}>Show more<//><span class="quiet">${list.sessions.value?.length.toLocaleString()} of ${list.total.value}</span></div>`
  )
}

/** Name of a session in one line, with its status and the beginning of its latest answer. */
function Name({ session }: { session: Session }): VNode {
  const { id, tags, is_pinned, forked_from, output_preview } = session
  return html`<span class="session-name">
    <span class="session-status"><${SessionBadge} session=${session} /></span>
    <${DraftBadge} tags=${tags} />
    ${is_pinned && html`<span title="Pinned"><${Icon} name="pin" /><span class="unseen">Pinned</span></span>`}
    ${forked_from && html`<span title="Fork"><${Icon} name="fork" /><span class="unseen">Fork</span></span>`}
    <a class="session-link" href=${link('sessions', id)} data-id=${id} title=${plain(titleOf(session))}>${titleOf(session)}</a>
    ${output_preview && html`<span class="quiet preview" dir="auto">${unmarked(output_preview)}</span>`}
  </span>`
}

/** Returns a line of Markdown without its most frequent marks. */
const unmarked = (text: string): string => text.replace(/\*\*|__|`+|^#+ /g, '')

const linkTo = (id: string | undefined): HTMLElement | null =>
  id === undefined ? null : document.querySelector<HTMLElement>(`.session-link[data-id="${CSS.escape(id)}"]`)

/** Moves the focus by some sessions. Without a focus it begins at the session that was opened last. */
function step({ place }: SessionList, by: number): void {
  const links = [...document.querySelectorAll<HTMLElement>('.session-link')]
  const now = document.activeElement?.closest('tr')?.querySelector<HTMLElement>('.session-link') ?? linkTo(place.opened)
  const at = now === null ? -1 : links.indexOf(now)
  const next = links[Math.max(0, Math.min(links.length - 1, at + by))]
  place.opened = next?.dataset.id
  next?.focus()
  next?.closest('tr')?.scrollIntoView({ block: 'nearest' })
}

/** Brings the reader back to where they were in the list. */
function usePlace({ place, sessions }: SessionList): void {
  const isLoaded = sessions.value !== undefined
  useEffect(() => {
    const back = place.scroll
    linkTo(place.opened)?.focus({ preventScroll: true })
    scrollTo(0, back)
    const look = () => {
      // A page that is being left becomes shorter first.
      if (route.value.path.length === 1) place.scroll = scrollY
    }
    addEventListener('scroll', look, { passive: true })
    return () => removeEventListener('scroll', look)
  }, [place, isLoaded])
  // Before the page is drawn, too.
  useLayoutEffect(() => scrollTo(0, place.scroll), [place])
}
