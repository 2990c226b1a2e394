import type { AgentCapabilityConfig } from '../../../contract/tools.ts'
import { agentCapabilities } from '../agents/capability.ts'
import type { Capability } from '../capabilities/capability.ts'
import type { Deps } from '../deps.ts'
import { serverCapability } from '../mcp-servers/capability.ts'
import { readServersForUse } from '../mcp-servers/read-for-use.ts'
import { skillCapability } from '../skills/capability.ts'

type Ref = Pick<AgentCapabilityConfig, 'ref'>

/** Ref of an organization's MCP server, skill or agent, by its UUID. */
const OWN_REF = /^(mcp|skill|agent):([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

/**
 * Returns all capabilities of the service, and the organization's MCP servers, skills and agents that the refs name, including
 * disabled ones. Skips unknown refs and other organizations'. Reads the record only if a ref names one of these.
 * With `toolName`, to run one call, reads only the MCP server whose tools have such names.
 */
export async function readCapabilities(
  deps: Deps,
  organizationId: string,
  refs: readonly Ref[],
  only: { toolName?: string } = {},
): Promise<Capability[]> {
  const skills = idsOf('skill', refs)
  const agents = idsOf('agent', refs)
  const [ofServers, ofSkills, ofAgents] = await Promise.all([
    readServersForUse(deps, organizationId, idsOf('mcp', refs), only),
    skills.length === 0 ? [] : deps.db.skill.findMany({ where: { organizationId, id: { in: skills } } }),
    agents.length === 0 ? [] : readAgents(deps, organizationId, agents),
  ])
  return [
    ...deps.capabilities,
    ...ofServers.map((row) => serverCapability(deps, row)),
    ...ofSkills.map(skillCapability),
    ...agentCapabilities(ofAgents),
  ]
}

/** Reads agents in the order of their ids, so that their tools keep their names. */
const readAgents = ({ db }: Deps, organizationId: string, ids: string[]) =>
  db.agent.findMany({
    where: { organizationId, id: { in: ids } },
    select: { id: true, name: true, description: true, status: true },
    orderBy: { id: 'asc' },
  })

/** Returns the UUIDs of the MCP servers, the skills or the agents among the refs. */
export const idsOf = (kind: 'mcp' | 'skill' | 'agent', refs: readonly Ref[]): string[] =>
  refs.flatMap(({ ref }) => {
    const [, found, id] = OWN_REF.exec(ref) ?? []
    return found === kind && id !== undefined ? [id] : []
  })
