import type { AgentName } from '../../../domain/agents/named.ts'
import { toId } from '../../../domain/kit/ids.ts'

/** Maximum number of agents that are offered by name. Others can be given by their ids. */
export const MAX_OFFERED_AGENTS = 200
const DESCRIPTION_CHARACTERS = 120
const NAME_CHARACTERS = 200

/** Agent as agent_start offers it. `label` is its name, or its id where the name would not select it alone. */
export type OfferedAgent = { label: string; about: string }

/** Labels the agents: by name where it is unique and short, otherwise by id. */
export function offerAgents(agents: AgentName[]): OfferedAgent[] {
  const counts = new Map<string, number>()
  for (const { name } of agents) counts.set(name, (counts.get(name) ?? 0) + 1)
  return agents.map(({ id, name, description }) => {
    const about = oneLine(description ?? '', DESCRIPTION_CHARACTERS)
    if (counts.get(name) === 1 && name.length <= NAME_CHARACTERS) return { label: name, about }
    const named = oneLine(name, DESCRIPTION_CHARACTERS)
    return { label: toId('agent', id), about: about === '' ? named : `${named}: ${about}` }
  })
}

/** Describes the agents for the model that chooses one. */
export function describeAgents(agents: OfferedAgent[]): string {
  if (agents.length === 0) return 'There are no agents yet.'
  const lines = agents.map(
    ({ label, about }) => `- ${oneLine(label, NAME_CHARACTERS)}${about === '' ? '' : `: ${about}`}`,
  )
  return ['Agents:', ...lines].join('\n')
}

function oneLine(text: string, characters: number): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length <= characters ? line : `${line.slice(0, characters - 1)}…`
}
