import type { Agent, CapabilityInfo, CreateAgentRequest } from 'agent-session-client'
import { type Chosen, chosenOf, configsOf, toolsOfChosen } from './capabilities.ts'
import { type Draft, draftsOf, toolsOf } from './tools.ts'

/** Agent as the editor holds it. */
export type Settings = {
  name: string
  system_prompt: string
  default_model_id: string
  description: string
  /** One per line. */
  tags: string
  chosen: Chosen
  drafts: Draft[]
}

export const settingsOf = (agent: Partial<Agent>): Settings => ({
  name: agent.name ?? '',
  system_prompt: agent.system_prompt ?? '',
  default_model_id: agent.default_model_id ?? '',
  description: agent.description ?? '',
  tags: (agent.tags ?? []).join('\n'),
  chosen: chosenOf(agent.capabilities ?? []),
  drafts: draftsOf(agent.tools ?? []),
})

/** Agent that the settings are. Throws for JSON that cannot be read. */
export function requestOf(settings: Settings, all: CapabilityInfo[]): CreateAgentRequest {
  const { name, system_prompt, default_model_id, description, tags, chosen, drafts } = settings
  return {
    name,
    system_prompt,
    default_model_id: default_model_id || null,
    description,
    tags: tags
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean),
    capabilities: configsOf(chosen),
    tools: toolsOf(drafts, toolsOfChosen(all, chosen)),
  }
}

/** Reports whether two settings are the same, so that nothing needs to be saved. */
export const isSame = (one: Settings, other: Settings): boolean => textOf(one) === textOf(other)

const textOf = ({ chosen, ...others }: Settings): string => JSON.stringify([others, [...chosen]])
