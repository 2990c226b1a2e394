import { AgentSelect } from '../../parts/agent-select.ts'
import { Choice } from '../../parts/choice.ts'
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
  return html`<${Choice} label="Status" none="Any status" value=${filter.status} options=${options} onChange=${(status: string) => change({ ...filter, status })} />`
}

/** Searches titles, messages and answers. */
export const Search = ({ filter, change }: Props): VNode =>
  html`<${SearchBox} text=${filter.search} label="Search sessions" onSearch=${(search: string) => change({ ...filter, search })} />`

export const focusSearch = (): void => document.getElementById('search')?.focus()
