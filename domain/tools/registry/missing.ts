import type { AgentCapabilityConfig } from '../../../contract/tools.ts'
import { findPredefined } from '../../models/llm/catalogue.ts'
import { readModels } from '../../models/llm/read-models.ts'
import type { Deps } from '../deps.ts'
import { idsOf } from './read.ts'

/** References of an agent or a session to a model and capabilities. */
type Names = { modelId: string | null; capabilities: AgentCapabilityConfig[] }

/** Ids of models and refs of capabilities that no longer exist. */
export type Missing = ReadonlySet<string>

/** Finds referenced models and capabilities that were deleted. Looks up only an organization's own. */
export async function findMissing(deps: Deps, organizationId: string, named: Names[]): Promise<Missing> {
  const refs = named.flatMap(({ capabilities }) => capabilities.filter(({ ref }) => !isOwn(deps, ref)))
  const models = named.flatMap(({ modelId }) =>
    modelId === null || findPredefined(deps.models.predefined, modelId) !== undefined ? [] : [modelId],
  )
  const known = await Promise.all([
    readIds(idsOf('mcp', refs), (where) => deps.db.mcpServer.findMany({ where, select: { id: true } }), 'mcp:'),
    readIds(idsOf('skill', refs), (where) => deps.db.skill.findMany({ where, select: { id: true } }), 'skill:'),
    readIds(idsOf('agent', refs), (where) => deps.db.agent.findMany({ where, select: { id: true } }), 'agent:'),
    readIds(models, ({ id }) => readModels(deps, organizationId, id.in)),
  ])
  const found = new Set(known.flat())
  return new Set([...refs.map(({ ref }) => ref), ...models].filter((one) => !found.has(one)))

  async function readIds(
    ids: string[],
    read: (where: { organizationId: string; id: { in: string[] } }) => Promise<{ id: string }[]>,
    prefix = '',
  ): Promise<string[]> {
    if (ids.length === 0) return []
    return (await read({ organizationId, id: { in: ids } })).map(({ id }) => prefix + id)
  }
}

const isOwn = ({ capabilities }: Deps, ref: string): boolean => capabilities.some(({ id }) => id === ref)

/** Returns capabilities in their presented form, and whether the model is missing. */
export const markMissing = (missing: Missing, { modelId, capabilities }: Names) => ({
  ...(modelId !== null && missing.has(modelId) && { missing_model: true }),
  capabilities: capabilities.map((one) => (missing.has(one.ref) ? { ...one, missing: true } : one)),
})
