import type { AgentSummary } from 'agent-session-client'
import { readPages, useLoad } from '../load.ts'
import { api } from '../service.ts'
import { html, useMemo, type VNode } from '../ui.ts'
import { SearchSelect, type SelectProps } from './search-select.ts'

/** Ids in one request. */
const MAX_IDS = 100

const find = async (search: string, limit: number): Promise<AgentSummary[]> =>
  (await api.agents.listAgentSummaries({ limit, ...(search !== '' && { search }) })).data

async function nameOf(id: string): Promise<string | undefined> {
  const [agent] = await findAgents([id])
  return agent?.status === 'archived' ? `${agent.name} (archived)` : agent?.name
}

/** Choice of an active agent. The chosen agent may be archived. */
export const AgentSelect = (props: SelectProps): VNode =>
  html`<${SearchSelect} one="agent" find=${find} nameOf=${nameOf} ...${props} />`

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
