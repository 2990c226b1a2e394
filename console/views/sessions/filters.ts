import { AgentSelect } from '../../parts/agent-select.ts'
import { html, useEffect, useRef, type VNode } from '../../ui.ts'
import { type Filter, STATUSES } from './session-list.ts'

/** Pause in typing that starts a search. */
const TYPING_MS = 250

type Props = { filter: Filter; change(filter: Filter): void }

/** Filters of the list by text, status, agent and tag. */
export function Filters({ filter, change }: Props): VNode {
  return html`<div class="filters">
    <${Search} filter=${filter} change=${change} />
    <${StatusChoice} filter=${filter} change=${change} />
    <${AgentSelect} class="filter" aria-label="Agent" none="All agents" value=${filter.agent} onChange=${(agent: string) => change({ ...filter, agent })} />
    ${filter.tag && html`<button type="button" class="tag-filter" onClick=${() => change({ ...filter, tag: '' })}>Tag: ${filter.tag} ×<span class="unseen"> (remove this filter)</span></button>`}
  </div>`
}

export function StatusChoice({ filter, change }: Props): VNode {
  const options = Object.entries(STATUSES).map(([value, { label }]) => ({ value, label }))
  return html`<${Choice} label="Status" all="Any status" value=${filter.status} options=${options} choose=${(status: string) => change({ ...filter, status })} />`
}

type ChoiceProps = {
  label: string
  /** Label of the empty choice. */
  all: string
  value: string
  options: { value: string; label: string }[]
  choose(value: string): void
}

function Choice({ label, all, value, options, choose }: ChoiceProps): VNode {
  return html`<select class="filter" aria-label=${label} onChange=${(event: Event) => choose((event.target as HTMLSelectElement).value)}>
    <option value="" selected=${value === ''}>${all}</option>
    ${options.map((option) => html`<option key=${option.value} value=${option.value} selected=${option.value === value}>${option.label}</option>`)}
  </select>`
}

/** Searches while the user types: titles, messages and answers. */
export function Search({ filter, change }: Props): VNode {
  const box = useRef<HTMLInputElement>(null)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  useEffect(() => {
    // The filter changed without typing.
    if (box.current && document.activeElement !== box.current) box.current.value = filter.search
  }, [filter.search])
  const search = () => {
    clearTimeout(timer.current)
    // The user may have left the list meanwhile.
    if (box.current) change({ ...filter, search: box.current.value.trim() })
  }
  const type = () => {
    clearTimeout(timer.current)
    timer.current = setTimeout(search, TYPING_MS)
  }
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    search()
  }
  return html`<form role="search" aria-label="Search sessions" class="search" onSubmit=${submit}>
    <label class="unseen" for="search">Search sessions</label>
    <input id="search" ref=${box} type="search" maxlength="256" defaultValue=${filter.search} placeholder="Search" autocomplete="off" dir="auto" onInput=${type} />
  </form>`
}

export const focusSearch = (): void => document.getElementById('search')?.focus()
