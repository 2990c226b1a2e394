import type { Agent } from '../../contract/agents.ts'
import type { AgentCapabilityConfig, ToolDefinition } from '../../contract/tools.ts'
import type { Agent as AgentRow } from '../../prisma/generated/client.ts'
import { DEFAULT_HARNESS_UUID, toId } from '../ids.ts'
import { presentCost, presentUsage } from '../usage.ts'

export const presentAgent = (row: AgentRow): Agent => ({
  id: toId('agent', row.id),
  harness_id: toId('harness', DEFAULT_HARNESS_UUID),
  name: row.name,
  description: row.description,
  system_prompt: row.systemPrompt,
  default_model_id: row.defaultModelId && toId('model', row.defaultModelId),
  tags: row.tags,
  // Validated when written, which only create.ts and update.ts do.
  capabilities: row.capabilities as AgentCapabilityConfig[],
  tools: row.tools as ToolDefinition[],
  status: row.status,
  usage: presentUsage(row),
  cost_usd: presentCost(row.costUsd),
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})
