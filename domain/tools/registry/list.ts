import type { CapabilityInfo } from '../../../contract/capabilities.ts'
import { canonicalRef } from '../../../contract/tools.ts'
import type { McpServer, Skill } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { notFound } from '../../kit/errors.ts'
import { type PageStart, type Pages, pages } from '../../kit/lists.ts'
import { presentCapability } from '../capabilities/present.ts'
import type { Deps } from '../deps.ts'
import { serverCapability } from '../mcp-servers/capability.ts'
import { skillCapability } from '../skills/capability.ts'
import { readCapabilities } from './read.ts'

/** Servers per page. Each server's tools may have half a megabyte. */
const SERVERS_AT_ONCE = 1
const SKILLS_AT_ONCE = 100

/** Lists the service's capabilities, and then the organization's active MCP servers and skills, newest first. */
export async function* listCapabilities(deps: Deps, { organizationId }: Actor): Pages<CapabilityInfo> {
  const where = { organizationId, status: 'active' } as const
  yield deps.capabilities.map(presentCapability)
  yield* pages({
    atOnce: SERVERS_AT_ONCE,
    read: async ({ after, take }: PageStart<McpServer>) => {
      const id = { lt: after?.id }
      const rows = await deps.db.mcpServer.findMany({ where: { ...where, id }, orderBy: { id: 'desc' }, take })
      return { rows, hasMore: rows.length === take }
    },
    present: (rows) => rows.map((row) => presentCapability(serverCapability(deps, row))),
  })
  yield* pages({
    atOnce: SKILLS_AT_ONCE,
    read: async ({ after, take }: PageStart<Skill>) => {
      const id = { lt: after?.id }
      const rows = await deps.db.skill.findMany({ where: { ...where, id }, orderBy: { id: 'desc' }, take })
      return { rows, hasMore: rows.length === take }
    },
    present: (rows) => rows.map((row) => presentCapability(skillCapability(row))),
  })
}

/** Returns a capability by its id. Throws `not_found` for a disabled one, too. */
export async function getCapability(deps: Deps, { organizationId }: Actor, given: string): Promise<CapabilityInfo> {
  const id = canonicalRef(given)
  const known = await readCapabilities(deps, organizationId, [{ ref: id }])
  const capability = known.find((candidate) => candidate.id === id)
  if (capability === undefined || capability.status === 'disabled') throw notFound('Capability')
  return presentCapability(capability)
}
