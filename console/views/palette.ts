import type { AgentSummary, Session } from 'agent-session-client'
import { useLoad } from '../load.ts'
import { Dialog } from '../parts/dialog.ts'
import { Icon } from '../parts/icon.ts'
import { notifyProblem } from '../parts/notice.ts'
import { plain } from '../parts/plain.ts'
import { Time } from '../parts/time.ts'
import { link } from '../router.ts'
import { api, sentenceOf } from '../service.ts'
import { html, useEffect, useMemo, useRef, useState, type VNode } from '../ui.ts'
import { type Entry, entriesOfIds, fixedEntries, goTo } from './palette-entries.ts'

const MAX_RECENT = 5
const MAX_FOUND = 6
/** Pause in typing after which the service is asked. */
const PAUSE_MS = 150
const MAX_CHARACTERS = 200

type Found = { agents: Entry[]; sessions: Entry[]; error?: unknown }
const NOTHING: Found = { agents: [], sessions: [] }

const sessionEntry = ({ id, title, preview, updated_at }: Session): Entry => ({
  id,
  label: title || preview || 'Untitled session',
  icon: 'session',
  note: html`<${Time} at=${updated_at} />`,
  run: goTo(link('sessions', id)),
})
const agentEntry = ({ id, name }: AgentSummary): Entry => ({
  id,
  label: name,
  icon: 'agent',
  run: goTo(link('agents', id)),
})

/** Asks the service for the agents and sessions that match a text. */
async function search(text: string): Promise<Found> {
  const [agents, sessions] = await Promise.all([
    api.agents.listAgentSummaries({ search: text, limit: MAX_FOUND }),
    api.sessions.list({ search: text, limit: MAX_FOUND }),
  ])
  return { agents: agents.data.map(agentEntry), sessions: sessions.data.map(sessionEntry) }
}

/** Searches a moment after the last key. Only the answer for the latest text is kept. */
function useSearch(text: string): { found: Found; isSearching: boolean } {
  const [state, setState] = useState({ text: '', found: NOTHING })
  useEffect(() => {
    if (text === '') return
    let isWanted = true
    const keep = (found: Found) => isWanted && setState({ text, found })
    const timer = setTimeout(() => search(text).then(keep, (error: unknown) => keep({ ...NOTHING, error })), PAUSE_MS)
    return () => {
      isWanted = false
      clearTimeout(timer)
    }
  }, [text])
  return text === '' ? { found: NOTHING, isSearching: false } : { found: state.found, isSearching: state.text !== text }
}

type Group = { title: string; entries: Entry[] }

/** Returns the groups of the palette, without empty ones. */
function groupsOf(text: string, found: Found, recent: Entry[], openKeys: () => void): Group[] {
  const [pages, actions] = fixedEntries(text, openKeys)
  const titled = recent.filter(({ label }) => label.toLowerCase().includes(text.toLowerCase()))
  const more = found.sessions.filter(({ id }) => !titled.some((session) => session.id === id))
  const sessions = [...titled.slice(0, text === '' ? MAX_RECENT : MAX_FOUND), ...more].slice(0, MAX_FOUND)
  const groups = [
    { title: 'Id', entries: entriesOfIds(text) },
    { title: text === '' ? 'Recent sessions' : 'Sessions', entries: sessions },
    pages,
    actions,
  ]
  if (text !== '') groups.splice(1, 0, { title: 'Agents', entries: found.agents })
  return groups.filter((group): group is Group => group !== undefined && group.entries.length > 0)
}

/** Palette over agents, sessions, pages and actions. */
export function View({ onClose, openKeys }: { onClose(): void; openKeys(): void }): VNode {
  const [entered, setEntered] = useState('')
  const [chosen, setChosen] = useState(0)
  const list = useRef<HTMLDivElement>(null)
  const text = entered.trim().slice(0, MAX_CHARACTERS)
  const { value: recent = [] } = useLoad(
    async () => (await api.sessions.list({ limit: 20 })).data.map(sessionEntry),
    [],
  )
  const { found, isSearching } = useSearch(text)
  const groups = useMemo(() => groupsOf(text, found, recent, openKeys), [text, found, recent])
  const entries = groups.flatMap((group) => group.entries)
  const at = Math.min(chosen, Math.max(0, entries.length - 1))
  useEffect(
    () => list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' }),
    [at, entries],
  )
  const choose = (entry: Entry | undefined) => {
    if (entry === undefined) return
    onClose()
    Promise.resolve(entry.run()).catch(notifyProblem)
  }
  const press = (event: KeyboardEvent) => {
    if (event.isComposing) return
    if (event.key === 'Enter') choose(entries[at])
    else {
      const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 8, PageUp: at - 8 }[event.key]
      if (to === undefined || entries.length === 0) return
      const isStep = Math.abs(to - at) === 1
      setChosen(isStep ? (to + entries.length) % entries.length : Math.max(0, Math.min(to, entries.length - 1)))
    }
    event.preventDefault()
  }
  const type = (event: Event) => {
    setEntered((event.target as HTMLInputElement).value)
    setChosen(0)
  }
  const option = (entry: Entry) => {
    const isChosen = entry === entries[at]
    return html`<div key=${entry.id} id=${`palette-${entry.id}`} role="option" aria-selected=${isChosen} onClick=${() => choose(entry)}>
      <${Icon} name=${entry.icon} /><span class="palette-label" dir="auto">${plain(entry.label)}</span>${entry.note && html`<span class="quiet">${entry.note}</span>`}</div>`
  }
  const status = isSearching ? 'Searching…' : entries.length === 0 ? `Nothing matches “${text}”.` : ''
  return html`<${Dialog} title="Search" className="palette" onClose=${onClose}>
    <div class="palette-entry"><${Icon} name="search" />
      <input role="combobox" aria-label="Search" aria-expanded="true" aria-controls="palette-list" aria-autocomplete="list" autocomplete="off" spellcheck=${false}
        aria-activedescendant=${entries[at] && `palette-${entries[at]?.id}`} placeholder="Search, or paste an id" value=${entered} onInput=${type} onKeyDown=${press} /></div>
    <div id="palette-list" ref=${list} role="listbox" aria-label="Results">${groups.map(
      ({ title, entries: offered }) =>
        html`<div key=${title} role="group" aria-label=${title}><div class="palette-title" aria-hidden="true">${title}</div>${offered.map(option)}</div>`,
    )}</div>
    <p class="quiet palette-status" role="status">${found.error !== undefined && !isSearching ? sentenceOf(found.error) : status}</p>
  <//>`
}
