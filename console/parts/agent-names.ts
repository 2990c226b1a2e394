import { useLoad } from '../load.ts'
import { api } from '../service.ts'
import { useMemo } from '../ui.ts'

export type AgentName = { id: string; name: string }

/** Reads the names of the organization's agents, newest first. */
export const readAgentNames = async (): Promise<AgentName[]> => (await api.agents.list()).data

/** Returns the agents, and a function that finds the name of one. */
export function useAgentNames(): { agents: AgentName[]; nameOf(id: string): string } {
  const { value: agents = [] } = useLoad(readAgentNames, [])
  const names = useMemo(() => new Map(agents.map(({ id, name }) => [id, name])), [agents])
  return { agents, nameOf: (id) => names.get(id) ?? (agents.length > 0 ? 'archived' : '') }
}
