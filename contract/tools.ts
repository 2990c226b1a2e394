import { z } from 'zod'
import { jsonUpTo, textUpTo } from './common.ts'

const KiB = 1024

/** JSON Schema object, limited in size because every model call carries it. */
const parameters = jsonUpTo(z.record(z.string(), z.unknown()), 10 * KiB)

const tool = {
  name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, { error: 'must be 1 to 64 letters, digits, "_" or "-"' }),
  description: textUpTo(KiB),
  parameters,
  display_name: textUpTo(256).nullish(),
}

export const ToolPolicy = z.enum(['auto', 'requires_approval', 'client_side']).meta({ id: 'ToolPolicy' })
export type ToolPolicy = z.infer<typeof ToolPolicy>

/**
 * Definition of a tool. `builtin` refers to a tool that a capability provides, and may change who runs it or how it is
 * described. Its `parameters` only count with the policy client_side.
 */
export const ToolDefinition = z
  .discriminatedUnion('type', [
    z
      .object({
        type: z.literal('builtin'),
        ...tool,
        policy: ToolPolicy.optional(),
      })
      .meta({ id: 'BuiltinTool' }),
    z.object({ type: z.literal('client_side'), ...tool }).meta({ id: 'ClientSideTool' }),
  ])
  .meta({ id: 'ToolDefinition' })
export type ToolDefinition = z.infer<typeof ToolDefinition>

export const AgentCapabilityConfig = z
  .object({ ref: textUpTo(255).min(1, { error: 'must not be empty' }), config: z.unknown().optional() })
  .meta({ id: 'AgentCapabilityConfig' })
export type AgentCapabilityConfig = z.infer<typeof AgentCapabilityConfig>

const MISSING = { description: 'True where it has been deleted. It is kept, and is not used.' }
/** Flag of an answer for a model that is named and has been deleted. */
export const missingModel = z.boolean().optional().meta(MISSING)
/** Capability as an agent or a session has it. */
export const NamedCapability = AgentCapabilityConfig.extend({ missing: z.boolean().optional().meta(MISSING) }).meta({
  id: 'NamedCapability',
})

export const MAX_CAPABILITIES = 250
export const MAX_TOOLS = 50
export const toolList = z
  .array(ToolDefinition)
  .max(MAX_TOOLS, { error: `must be at most ${MAX_TOOLS} tools` })
  .refine((tools) => new Set(tools.map((tool) => tool.name)).size === tools.length, {
    error: 'must not have two tools of one name',
  })
export const capabilityList = jsonUpTo(
  z.array(AgentCapabilityConfig).max(MAX_CAPABILITIES, { error: `must be at most ${MAX_CAPABILITIES} capabilities` }),
  256 * KiB,
)
export const tagList = z.array(textUpTo(256)).max(100, { error: 'must be at most 100 tags' })
