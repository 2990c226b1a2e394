import { z } from 'zod'
import { listOf } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { ToolDefinition } from './tools.ts'

export const CapabilityInfo = z
  .object({
    /** Value by which agents and sessions name the capability as `ref`. */
    id: z.string(),
    name: z.string(),
    description: z.string(),
    /** Availability. Only an available capability adds something, but the others may already be named. */
    status: z.enum(['available', 'coming_soon']),
    category: z.string().nullish(),
    dependencies: z.array(z.string()),
    features: z.array(z.enum(['file_system', 'secrets', 'key_value', 'schedules', 'sql_database'])),
    icon: z.string().nullish(),
    is_mcp: z.boolean(),
    is_skill: z.boolean(),
    system_prompt: z.string().nullish(),
    tool_definitions: z.array(ToolDefinition),
  })
  .meta({ id: 'CapabilityInfo' })
export type CapabilityInfo = z.infer<typeof CapabilityInfo>

export const capabilityEndpoints = group(
  { tag: 'capabilities', path: '/v1/capabilities', access: 'member' },
  {
    list: {
      operationId: 'listCapabilities',
      method: 'GET',
      summary: 'Lists the capabilities that agents and sessions may name',
      responses: { 200: listOf(CapabilityInfo) },
    },
    get: {
      operationId: 'getCapability',
      method: 'GET',
      at: '/{capability_id}',
      summary: 'Gets a capability',
      params: z.object({ capability_id: z.string().max(255, { error: 'must be at most 255 characters' }) }),
      responses: { 200: CapabilityInfo },
    },
  },
)
