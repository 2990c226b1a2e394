import { AgentSelect } from '../../parts/agent-select.ts'
import { SearchBox } from '../../parts/search-box.ts'
import { html, type VNode } from '../../ui.ts'
import { type Filter, STATUSES } from './session-list.ts'

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

/** Searches titles, messages and answers. */
export const Search = ({ filter, change }: Props): VNode =>
  html`<${SearchBox} text=${filter.search} label="Search sessions" maxLength=${256} onSearch=${(search: string) => change({ ...filter, search })} />`

export const focusSearch = (): void => document.getElementById('search')?.focus()
