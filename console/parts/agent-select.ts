import type { AgentSummary } from 'agent-session-client'
import { readPages, useLoad } from '../load.ts'
import { api } from '../service.ts'
import { html, useEffect, useMemo, useState, type VNode } from '../ui.ts'

/** Number of agents above which they are searched. */
const MAX_OPTIONS = 50
/** Ids in one request. */
const MAX_IDS = 100
/** Pause in typing that starts a search. */
const TYPING_MS = 250

type Props = {
  /** Id of the chosen agent. It may be archived. */
  value?: string | null
  /** Label of the empty choice. Without one, an agent must be chosen. */
  none?: string
  onChange?(id: string): void
  /** Further attributes of the select, such as `id`, `name` and `aria-label`. */
  [attribute: string]: unknown
}

/** Choice of an active agent. With more than 50, a search above it narrows them. */
export function AgentSelect({ value, none, onChange, ...attributes }: Props): VNode {
  const [chosen, setChosen] = useState(value ?? '')
  const [search, setSearch] = useState('')
  const [isLong, setLong] = useState(false)
  useEffect(() => setChosen(value ?? ''), [value])
  const { value: found } = useLoad(async () => {
    const query = { limit: MAX_OPTIONS + 1, ...(search !== '' && { search }) }
    const { data } = await api.agents.listAgentSummaries(query)
    if (data.length > MAX_OPTIONS) setLong(true)
    return data.slice(0, MAX_OPTIONS)
  }, [search])
  const isListed = chosen === '' || found?.some(({ id }) => id === chosen)
  const known = useAgents(found === undefined || isListed ? [] : [chosen])
  const change = (event: Event) => {
    const { value: id } = event.target as HTMLSelectElement
    setChosen(id)
    onChange?.(id)
  }
  return html`<span class="agent-select">
    ${isLong && html`<${Search} onSearch=${setSearch} />`}
    <select ...${attributes} onChange=${change}>
      ${(none !== undefined || chosen === '') && html`<option value="" selected=${chosen === ''}>${none ?? 'Choose an agent'}</option>`}
      ${!isListed && html`<option key=${chosen} value=${chosen} selected>${nameOf(chosen, known)}</option>`}
      ${found?.map(({ id, name }) => html`<option key=${id} value=${id} selected=${id === chosen}>${name}</option>`)}
    </select></span>`
}

/** Returns a name for a choice that is not in the list. */
function nameOf(id: string, known: Map<string, AgentSummary>): string {
  const agent = known.get(id)
  if (agent === undefined) return id
  return agent.status === 'archived' ? `${agent.name} (archived)` : agent.name
}

function Search({ onSearch }: { onSearch(text: string): void }): VNode {
  const [text, setText] = useState('')
  useEffect(() => {
    const timer = setTimeout(onSearch, TYPING_MS, text.trim())
    return () => clearTimeout(timer)
  }, [text])
  // Enter would submit the form around it, and the form would take the search for unsaved input.
  const press = (event: KeyboardEvent) => event.key === 'Enter' && event.preventDefault()
  const type = (event: Event) => {
    event.stopPropagation()
    setText((event.target as HTMLInputElement).value)
  }
  return html`<input type="search" aria-label="Search agents" placeholder="Search agents" autocomplete="off" value=${text} onKeyDown=${press} onInput=${type} />`
}

/** Finds what lists show of agents, also of archived ones, by their ids. */
export function useAgents(ids: (string | null | undefined)[]): Map<string, AgentSummary> {
  const wanted = [...new Set(ids.filter((id) => id))].sort().join(' ')
  const { value } = useLoad(() => findAgents(wanted === '' ? [] : wanted.split(' ')), [wanted])
  return useMemo(() => new Map(value?.map((agent) => [agent.id, agent])), [value])
}

/** Returns a function that finds the names of agents, also of archived ones, among these ids. */
export function useAgentNames(ids: (string | null | undefined)[]): (id: string) => string {
  const agents = useAgents(ids)
  return (id) => agents.get(id)?.name ?? ''
}

/** Returns the name of an agent. Undefined for a deleted agent. */
export const readAgentName = async (id: string): Promise<string | undefined> => (await findAgents([id]))[0]?.name

async function findAgents(ids: string[]): Promise<AgentSummary[]> {
  const found: AgentSummary[] = []
  for (let start = 0; start < ids.length; start += MAX_IDS) {
    const id = ids.slice(start, start + MAX_IDS)
    found.push(...(await readPages((part) => api.agents.listAgentSummaries({ id, ...part }), MAX_IDS)))
  }
  return found
}
