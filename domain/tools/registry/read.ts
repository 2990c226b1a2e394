import type { AgentCapabilityConfig } from '../../../contract/tools.ts'
import type { Capability } from '../capabilities/capability.ts'
import type { Deps } from '../deps.ts'
import { serverCapability } from '../mcp-servers/capability.ts'
import { readServersForUse } from '../mcp-servers/read-for-use.ts'
import { skillCapability } from '../skills/capability.ts'

type Ref = Pick<AgentCapabilityConfig, 'ref'>

/** Ref of an organization's MCP server or skill, by its UUID. */
const OWN_REF = /^(mcp|skill):([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

/**
 * Returns all capabilities of the service, and the organization's MCP servers and skills that the refs name, including
 * disabled ones. Skips unknown refs and other organizations'. Reads the record only if a ref names a server or a skill.
 * With `toolName`, to run one call, reads only the MCP server whose tools have such names.
 */
export async function readCapabilities(
  deps: Deps,
  organizationId: string,
  refs: readonly Ref[],
  only: { toolName?: string } = {},
): Promise<Capability[]> {
  const skills = idsOf('skill', refs)
  const [ofServers, ofSkills] = await Promise.all([
    readServersForUse(deps, organizationId, idsOf('mcp', refs), only),
    skills.length === 0 ? [] : deps.db.skill.findMany({ where: { organizationId, id: { in: skills } } }),
  ])
  return [
    ...deps.capabilities,
    ...ofServers.map((row) => serverCapability(deps, row)),
    ...ofSkills.map(skillCapability),
  ]
}

/** Returns the UUIDs of the MCP servers or of the skills among the refs. */
export const idsOf = (kind: 'mcp' | 'skill', refs: readonly Ref[]): string[] =>
  refs.flatMap(({ ref }) => {
    const [, found, id] = OWN_REF.exec(ref) ?? []
    return found === kind && id !== undefined ? [id] : []
  })
