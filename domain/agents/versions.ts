import { isDeepStrictEqual } from 'node:util'
import type { AgentVersion, AgentVersionContent, AgentVersionDiff } from '../../contract/agent-versions.ts'
import type { Agent, AgentLimits } from '../../contract/agents.ts'
import type { AgentId } from '../../contract/kit/ids.ts'
import type { AgentCapabilityConfig, ToolDefinition } from '../../contract/tools.ts'
import type { Prisma, AgentVersion as VersionRow } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import { notFound } from '../kit/errors.ts'
import { toId } from '../kit/ids.ts'
import { findMissing, markMissing } from '../tools/registry/missing.ts'
import { checkStoredTools } from './check.ts'
import type { Deps } from './deps.ts'
import { writableSchema } from './output-schema.ts'
import { findVersion, requireAgent } from './read.ts'
import { updateAgent } from './update.ts'

/** Lists versions of an agent, newest first, below `before`. Throws `not_found`. */
export async function listVersions(
  deps: Deps,
  actor: Actor,
  id: AgentId,
  { before, limit }: { before?: number | undefined; limit: number },
): Promise<AgentVersion[]> {
  await requireAgent(deps, actor, id)
  const rows = await deps.db.agentVersion.findMany({
    where: { organizationId: actor.organizationId, agentId: id, version: before === undefined ? {} : { lt: before } },
    select: { agentId: true, version: true, note: true, userId: true, apiKeyId: true, createdAt: true, name: true },
    orderBy: { version: 'desc' },
    take: limit,
  })
  return rows.map((row) => ({ ...presentSummary(row), name: row.name }))
}

/** Returns a version. Throws `not_found`. */
export async function getVersion(deps: Deps, actor: Actor, id: AgentId, version: number): Promise<AgentVersionContent> {
  const row = await requireVersion(deps, actor, id, version)
  const named = { modelId: row.defaultModelId, capabilities: row.capabilities as AgentCapabilityConfig[] }
  const missing = await findMissing(deps, row.organizationId, [named])
  return { ...presentSummary(row), ...contentOf(row), ...markMissing(missing, named) }
}

/** Returns the fields that two versions have differently. Throws `not_found`. */
export async function diffVersions(
  deps: Deps,
  actor: Actor,
  id: AgentId,
  { from, to }: { from: number; to: number },
): Promise<AgentVersionDiff> {
  const [before, after] = await Promise.all([
    requireVersion(deps, actor, id, from),
    requireVersion(deps, actor, id, to),
  ])
  const [old, now] = [contentOf(before), contentOf(after)]
  const changes = Object.entries(now).flatMap(([field, value]) => {
    const was = old[field as keyof typeof old]
    return isDeepStrictEqual(was, value) ? [] : [{ field, from: was, to: value }]
  })
  return { from, to, changes }
}

/**
 * Gives an agent all that it had in a version, as a new one. Throws `not_found`, and `invalid` for a tool that an agent
 * can no longer have.
 */
export async function restoreVersion(
  deps: Deps,
  actor: Actor,
  id: AgentId,
  { version, note }: { version: number; note?: string | null | undefined },
): Promise<Agent> {
  const { name, description, systemPrompt, defaultModelId, tags, ...row } = await requireVersion(
    deps,
    actor,
    id,
    version,
  )
  await checkStoredTools(deps, actor, row)
  const content = { name, description, systemPrompt, defaultModelId, tags }
  const outputSchema = writableSchema(row.outputSchema as AgentVersionContent['output_schema'])
  const json = { capabilities: row.capabilities, tools: row.tools, limits: row.limits } as Record<
    string,
    Prisma.InputJsonValue
  >
  const told = { action: 'agent.update', target: id, details: { version } } as const
  return updateAgent(deps, actor, { ...content, ...json, outputSchema }, told, {
    note: note ?? `Version ${version} restored`,
  })
}

/** Reads a version of one of the organization's agents. Throws `not_found`. */
async function requireVersion(
  deps: Pick<Deps, 'db'>,
  actor: Pick<Actor, 'organizationId'>,
  agentId: string,
  version: number,
): Promise<VersionRow> {
  const row = await findVersion(deps, actor, agentId, version)
  if (row === null) throw notFound('Version')
  return row
}

const presentSummary = (
  row: Pick<VersionRow, 'agentId' | 'version' | 'note' | 'userId' | 'apiKeyId' | 'createdAt'>,
) => ({
  agent_id: toId('agent', row.agentId),
  version: row.version,
  note: row.note,
  user_id: row.userId,
  api_key_id: row.apiKeyId,
  created_at: row.createdAt.toISOString(),
})

/** What a version is compared by. Only create.ts and update.ts write it, validated by the contract. */
const contentOf = (row: VersionRow) => ({
  name: row.name,
  description: row.description,
  system_prompt: row.systemPrompt,
  default_model_id: row.defaultModelId && toId('model', row.defaultModelId),
  tags: row.tags,
  capabilities: row.capabilities as AgentCapabilityConfig[],
  tools: row.tools as ToolDefinition[],
  limits: row.limits as AgentLimits,
  output_schema: row.outputSchema as AgentVersionContent['output_schema'],
})
