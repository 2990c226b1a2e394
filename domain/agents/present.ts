import type { Agent, AgentLimits, AgentSummary } from '../../contract/agents.ts'
import type { AgentCapabilityConfig, ToolDefinition } from '../../contract/tools.ts'
import type { Agent as AgentRow } from '../../prisma/generated/client.ts'
import type { Deps } from '../conversation/deps.ts'
import { DEFAULT_HARNESS_UUID, toId } from '../kit/ids.ts'
import { presentCost, presentUsage } from '../kit/usage.ts'
import { findMissing, type Missing, markMissing } from '../tools/registry/missing.ts'

export async function presentAgent(deps: Deps, row: AgentRow): Promise<Agent> {
  return present(row, await findMissing(deps, row.organizationId, [namesOf(row)]))
}

/** Presents agents of one organization. */
export async function presentAgents(deps: Deps, organizationId: string, rows: AgentRow[]): Promise<Agent[]> {
  const missing = await findMissing(deps, organizationId, rows.map(namesOf))
  return rows.map((row) => present(row, missing))
}

/** Returns an agent's references. Only create.ts and update.ts write them, validated by the contract. */
const namesOf = ({ defaultModelId, capabilities }: AgentRow) => ({
  modelId: defaultModelId,
  capabilities: capabilities as AgentCapabilityConfig[],
})

const present = (row: AgentRow, missing: Missing): Agent => ({
  id: toId('agent', row.id),
  harness_id: toId('harness', DEFAULT_HARNESS_UUID),
  name: row.name,
  description: row.description,
  system_prompt: row.systemPrompt,
  default_model_id: row.defaultModelId && toId('model', row.defaultModelId),
  ...markMissing(missing, namesOf(row)),
  tags: row.tags,
  tools: row.tools as ToolDefinition[],
  limits: row.limits as AgentLimits,
  output_schema: row.outputSchema as Agent['output_schema'],
  status: row.status,
  version: row.version,
  usage: presentUsage(row),
  cost_usd: presentCost(row.costUsd),
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})

export type SummaryRow = Pick<
  AgentRow,
  'id' | 'name' | 'description' | 'tags' | 'status' | 'version' | 'defaultModelId' | 'createdAt' | 'updatedAt'
>

export const presentSummary = (row: SummaryRow): AgentSummary => ({
  id: toId('agent', row.id),
  name: row.name,
  description: row.description,
  default_model_id: row.defaultModelId && toId('model', row.defaultModelId),
  tags: row.tags,
  status: row.status,
  version: row.version,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})
