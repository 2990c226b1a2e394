import { z } from 'zod'
import { jsonUpTo, textUpTo, unsupported } from './kit/common.ts'
import { fromId } from './kit/ids.ts'
import { temporalFields, withTemporalRules } from './temporal-tools.ts'

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

const BuiltinTool = z.object({ type: z.literal('builtin'), ...tool, policy: ToolPolicy.optional() })
const ClientSideTool = z.object({
  type: z.literal('client_side'),
  ...tool,
  replaces: z.boolean().optional().meta({ description: 'True if it replaces a builtin tool of the same name.' }),
})

const TemporalTool = z.object({ type: z.literal('temporal'), ...tool, ...temporalFields })

/**
 * Definition of a tool. `builtin` refers to a tool that a capability provides, and may change who runs it; `temporal` is
 * run by a worker of the organization.
 */
export const ToolDefinition = z
  .discriminatedUnion('type', [
    BuiltinTool.meta({ id: 'BuiltinTool' }),
    ClientSideTool.meta({ id: 'ClientSideTool' }),
    TemporalTool.meta({ id: 'TemporalTool' }),
  ])
  .meta({ id: 'ToolDefinition' })
export type ToolDefinition = z.infer<typeof ToolDefinition>
export type TemporalToolDefinition = Extract<ToolDefinition, { type: 'temporal' }>

/** Names that other services have for the policy of a tool. */
const policyElsewhere = (way: string) => ({
  needsApproval: unsupported(way),
  needs_approval: unsupported(way),
  require_approval: unsupported(way),
  requires_approval: unsupported(way),
})
const RUN_BY_CLIENT = 'a client tool is run by the client, which may ask before'

const ITS_OWN = { description: "Ignored: the capability's tool has its own." }
const InputToolDefinition = z
  .discriminatedUnion('type', [
    BuiltinTool.extend({
      description: tool.description.default('').meta(ITS_OWN),
      parameters: parameters.default({}).meta(ITS_OWN),
      ...policyElsewhere('give "policy": "requires_approval"'),
    }).meta({ id: 'InputBuiltinTool' }),
    ClientSideTool.extend({
      policy: unsupported(RUN_BY_CLIENT),
      ...policyElsewhere(RUN_BY_CLIENT),
    }).meta({ id: 'InputClientSideTool' }),
    withTemporalRules(TemporalTool.extend(policyElsewhere('give "policy": "requires_approval"'))).meta({
      id: 'InputTemporalTool',
    }),
  ])
  .meta({ id: 'InputToolDefinition' })

const ref = textUpTo(255).min(1, { error: 'must not be empty' })
export const AgentCapabilityConfig = z
  .object({ ref, config: z.unknown().optional() })
  .meta({ id: 'AgentCapabilityConfig' })
export type AgentCapabilityConfig = z.infer<typeof AgentCapabilityConfig>

/** Returns the ref of a capability, which may be given by the id of its MCP server, skill or agent: `mcp_…`, `mcp:mcp_…`. */
export function canonicalRef(given: string): string {
  const [, kind, id] = /^(?:(?:mcp|skill|agent):)?((?:mcp|skill|agent))_([0-9a-f]{32})$/.exec(given) ?? []
  return kind === undefined || id === undefined ? given : `${kind}:${fromId(`${kind}_${id}`)}`
}

/** Capability in a request, which may be its ref alone. */
const InputCapability = z.codec(
  z.union([ref.meta({ id: 'CapabilityRef' }), AgentCapabilityConfig]),
  z.custom<AgentCapabilityConfig>(),
  {
    decode: (given) =>
      typeof given === 'string' ? { ref: canonicalRef(given) } : { ...given, ref: canonicalRef(given.ref) },
    encode: (capability) => capability,
  },
)

const MISSING = { description: 'True if it has been deleted. It stays listed, and is not used.' }
/** Flag in answers: the named model has been deleted. */
export const missingModel = z.boolean().optional().meta(MISSING)
/** Capability of an agent or a session. */
export const NamedCapability = AgentCapabilityConfig.extend({ missing: z.boolean().optional().meta(MISSING) }).meta({
  id: 'NamedCapability',
})

export const MAX_CAPABILITIES = 250
export const MAX_TOOLS = 50
export const toolList = z
  .array(InputToolDefinition)
  .max(MAX_TOOLS, { error: `must have at most ${MAX_TOOLS} tools` })
  .refine((tools) => new Set(tools.map((tool) => tool.name)).size === tools.length, {
    error: 'must not have two tools of one name',
  })
export const capabilityList = jsonUpTo(
  z.array(InputCapability).max(MAX_CAPABILITIES, { error: `must have at most ${MAX_CAPABILITIES} capabilities` }),
  256 * KiB,
)
export const tagList = z.array(textUpTo(256)).max(100, { error: 'must have at most 100 tags' })
