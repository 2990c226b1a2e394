import { z } from 'zod'
import { DateTime, listOf, TokenUsage, textUpTo } from './common.ts'
import { defineEndpoint, type Endpoint } from './endpoint.ts'
import { AgentId, ModelId } from './ids.ts'
import { AgentCapabilityConfig, capabilityList, ToolDefinition, tagList, toolList } from './tools.ts'

const KiB = 1024
const MiB = 1024 * KiB

export const Agent = z
  .object({
    id: AgentId,
    name: z.string(),
    description: z.string().nullish(),
    system_prompt: z.string(),
    default_model_id: ModelId.nullish(),
    tags: z.array(z.string()),
    capabilities: z.array(AgentCapabilityConfig),
    tools: z.array(ToolDefinition),
    status: z.enum(['active', 'archived']),
    usage: TokenUsage.nullish(),
    created_at: DateTime,
    updated_at: DateTime,
  })
  .meta({ id: 'Agent' })
export type Agent = z.infer<typeof Agent>

export const CreateAgentRequest = z
  .object({
    id: AgentId.nullish(),
    name: textUpTo(2 * KiB).refine((name) => name.trim() !== '', { error: 'must not be empty' }),
    description: textUpTo(10 * KiB).nullish(),
    system_prompt: textUpTo(MiB),
    default_model_id: ModelId.nullish(),
    tags: tagList.optional(),
    capabilities: capabilityList.optional(),
    tools: toolList.optional(),
  })
  .meta({ id: 'CreateAgentRequest' })
export type CreateAgentRequest = z.infer<typeof CreateAgentRequest>

const AGENT_BODY_BYTES = 3 * MiB

export const agentEndpoints = {
  list: defineEndpoint({
    method: 'GET',
    path: '/v1/agents',
    tag: 'agents',
    summary: 'Lists the active agents of the organization, newest first',
    query: z.object({ search: textUpTo(KiB).optional() }),
    responses: { 200: listOf(Agent) },
    errors: [400],
  }),
  create: defineEndpoint({
    method: 'POST',
    path: '/v1/agents',
    tag: 'agents',
    summary: 'Creates an agent, or updates the one whose id is given',
    body: CreateAgentRequest,
    bodyLimitBytes: AGENT_BODY_BYTES,
    responses: { 201: Agent, 200: Agent },
    errors: [400],
  }),
  get: defineEndpoint({
    method: 'GET',
    path: '/v1/agents/{agent_id}',
    tag: 'agents',
    summary: 'Gets an agent, archived ones too',
    params: z.object({ agent_id: AgentId }),
    responses: { 200: Agent },
    errors: [400, 404],
  }),
} satisfies Record<string, Endpoint>
