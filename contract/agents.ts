import { z } from 'zod'
import { CostUsd, DateTime, listOf, TokenUsage, textUpTo, unsupported } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { AgentId, ClearableModelRef, ModelRef, wireId } from './kit/ids.ts'
import { pagination, repeated } from './kit/query.ts'
import { OutputSchema } from './output-schema.ts'
import { capabilityList, missingModel, NamedCapability, ToolDefinition, tagList, toolList } from './tools.ts'

const KiB = 1024
const MiB = 1024 * KiB

export const AgentStatus = z.enum(['active', 'archived']).meta({ id: 'AgentStatus' })

const MAX_LIMIT = 1_000_000_000
const limit = (description: string, least = 1) => z.int().min(least).max(MAX_LIMIT).nullish().meta({ description })

/** Limits on the turns of an agent. Absent ones are the installation's. */
export const AgentLimits = z
  .strictObject({
    max_turn_seconds: limit('Age of a turn, without the time in which it waits for its client.'),
    max_model_calls: limit('Model calls of a turn.'),
    max_tool_calls: limit('Tool calls of a turn.'),
    max_output_tokens: limit('Output tokens of a turn, summed over its model calls.', 16),
    max_answer_characters: limit('Characters of one answer of the model, with its thinking and its tool calls.'),
    max_running_turns: limit('Turns of the agent that run at once. Others wait, in the order of their messages.'),
  })
  .meta({ id: 'AgentLimits' })
export type AgentLimits = z.infer<typeof AgentLimits>

/** Fields of an agent that each of its versions keeps. */
export const agentContent = {
  name: z.string(),
  description: z.string().nullish(),
  system_prompt: z.string(),
  default_model_id: wireId('model').nullish(),
  missing_model: missingModel,
  tags: z.array(z.string()),
  capabilities: z.array(NamedCapability),
  tools: z.array(ToolDefinition),
  limits: AgentLimits,
  output_schema: OutputSchema.nullish(),
}

export const Agent = z
  .object({
    id: wireId('agent'),
    harness_id: wireId('harness'),
    ...agentContent,
    status: AgentStatus,
    version: z.int().min(1).nullish().meta({ description: 'Number of its newest version.' }),
    usage: TokenUsage.nullish(),
    cost_usd: CostUsd.nullish(),
    created_at: DateTime,
    updated_at: DateTime,
  })
  .meta({ id: 'Agent' })
export type Agent = z.infer<typeof Agent>

/** Fields of an agent that lists show. */
export const AgentSummary = z
  .object({
    id: wireId('agent'),
    name: z.string(),
    description: z.string().nullish().meta({ description: 'Its first 300 characters.' }),
    default_model_id: wireId('model').nullish(),
    tags: z.array(z.string()),
    status: AgentStatus,
    version: z.int().min(1),
    created_at: DateTime,
    updated_at: DateTime,
  })
  .meta({ id: 'AgentSummary' })
export type AgentSummary = z.infer<typeof AgentSummary>

export const MAX_NAME_BYTES = 2 * KiB
const name = textUpTo(MAX_NAME_BYTES).refine((text) => text.trim() !== '', { error: 'must not be empty' })
const description = textUpTo(10 * KiB)
const systemPrompt = textUpTo(MiB)
const versioned = {
  version_note: textUpTo(2 * KiB)
    .nullish()
    .meta({ description: 'Why: the note of the version that the change makes.' }),
}
const ifVersion = z
  .int()
  .min(1)
  .nullish()
  .meta({ description: 'Version that the agent must have; otherwise the answer is 409.' })
/** Names that other services have for the fields of an agent. */
const namesElsewhere = {
  model: unsupported('give default_model_id'),
  model_id: unsupported('give default_model_id'),
  instructions: unsupported('give system_prompt'),
  prompt: unsupported('give system_prompt'),
  system: unsupported('give system_prompt'),
  mcp_servers: unsupported('give capabilities'),
  skills: unsupported('give capabilities'),
  response_format: unsupported('give output_schema'),
}

export const CreateAgentRequest = z
  .object({
    id: AgentId.nullish(),
    name,
    description: description.nullish(),
    system_prompt: systemPrompt,
    default_model_id: ModelRef.nullish(),
    tags: tagList.optional(),
    capabilities: capabilityList.optional(),
    tools: toolList.optional(),
    limits: AgentLimits.nullish(),
    output_schema: OutputSchema.nullish(),
    ...versioned,
    if_version: ifVersion,
    ...namesElsewhere,
  })
  .meta({ id: 'CreateAgentRequest' })
export type CreateAgentRequest = z.infer<typeof CreateAgentRequest>

/** Changes to an agent. Fields that are null or absent stay as they are; lists are replaced as a whole. */
export const UpdateAgentRequest = z
  .object({
    name: name.nullish(),
    description: description.nullish(),
    system_prompt: systemPrompt.nullish(),
    default_model_id: ClearableModelRef.nullish().meta({ description: '"" removes the model.' }),
    tags: tagList.nullish(),
    capabilities: capabilityList.nullish(),
    tools: toolList.nullish(),
    limits: AgentLimits.nullish().meta({ description: 'Replaced as a whole; {} removes all.' }),
    output_schema: OutputSchema.nullish().meta({ description: 'Replaced as a whole; {} removes it.' }),
    ...versioned,
    if_version: ifVersion,
    ...namesElsewhere,
    status: AgentStatus.nullish(),
  })
  .meta({ id: 'UpdateAgentRequest' })
export type UpdateAgentRequest = z.infer<typeof UpdateAgentRequest>

export const PreviewAgentRequest = z
  .object({
    system_prompt: systemPrompt,
    capabilities: capabilityList.optional(),
    tools: toolList.optional(),
    ...namesElsewhere,
  })
  .meta({ id: 'PreviewAgentRequest' })
export type PreviewAgentRequest = z.infer<typeof PreviewAgentRequest>

export const AgentPreviewResponse = z
  .object({
    system_prompt: z.string(),
    system_prompt_sha256: z.string().optional().meta({
      description: 'SHA-256 of the prompt, which `llm.generation` has of the prompt that a model was given.',
    }),
    tools: z.array(ToolDefinition),
  })
  .meta({ id: 'AgentPreviewResponse' })
export type AgentPreviewResponse = z.infer<typeof AgentPreviewResponse>

const AGENT_BODY_BYTES = 3 * MiB
const AgentPath = z.object({ agent_id: AgentId })
export const YAML_TYPES = ['application/yaml', 'application/x-yaml', 'text/yaml']
/** Media types of an agent's document. */
const DOCUMENT_TYPES = ['text/plain', 'text/markdown', 'application/json', ...YAML_TYPES]

export const agentEndpoints = group(
  { tag: 'agents', path: '/v1/agents', access: 'member' },
  {
    list: {
      operationId: 'listAgents',
      method: 'GET',
      summary: 'Lists agents of the organization, newest first',
      query: z.object({
        search: textUpTo(200).optional(),
        status: AgentStatus.optional().meta({ description: 'Default: active.' }),
      }),
      responses: { 200: listOf(Agent) },
    },
    summaries: {
      operationId: 'listAgentSummaries',
      method: 'GET',
      at: '/summaries',
      summary: 'Lists agents without their prompts, capabilities and tools, newest first',
      query: z.object({
        search: textUpTo(200).optional(),
        status: AgentStatus.optional().meta({ description: 'Default: active; with `id`, all.' }),
        id: repeated(AgentId, 100).meta({
          type: 'array',
          items: { type: 'string' },
          description: 'Only these agents; repeat the key.',
        }),
        ...pagination,
      }),
      responses: { 200: listOf(AgentSummary) },
    },
    create: {
      operationId: 'createAgent',
      method: 'POST',
      summary: 'Creates an agent, or updates the agent with the given id',
      body: CreateAgentRequest,
      bodyLimitBytes: AGENT_BODY_BYTES,
      creates: true,
      responses: { 201: Agent, 200: Agent },
      errors: [422],
    },
    import: {
      operationId: 'importAgent',
      method: 'POST',
      at: '/import',
      summary: 'Creates an agent from a document',
      description:
        'Markdown with YAML front matter, JSON, YAML, or plain text, which becomes the system prompt; the format is detected. ' +
        'It has the fields of a create request; a capability may be just its id. 409 if the id exists. References that an export marks as missing are kept.',
      body: z.string(),
      textTypes: DOCUMENT_TYPES,
      bodyLimitBytes: AGENT_BODY_BYTES,
      creates: true,
      responses: { 201: Agent },
      errors: [422],
    },
    preview: {
      operationId: 'previewAgent',
      method: 'POST',
      at: '/preview',
      summary: 'Shows the input that a model would get, without storing anything',
      body: PreviewAgentRequest,
      bodyLimitBytes: AGENT_BODY_BYTES,
      responses: { 200: AgentPreviewResponse },
      errors: [422],
    },
    get: {
      operationId: 'getAgent',
      method: 'GET',
      at: '/{agent_id}',
      summary: 'Gets an agent, even if archived',
      params: AgentPath,
      responses: { 200: Agent },
    },
    put: {
      operationId: 'putAgent',
      method: 'PUT',
      at: '/{agent_id}',
      summary: 'Creates or replaces an agent',
      description:
        'Absent or empty capabilities stay unchanged; every other absent field is reset. An answer of GET is always accepted, also if the model or capabilities that the agent names have been deleted.',
      params: AgentPath,
      body: CreateAgentRequest,
      bodyLimitBytes: AGENT_BODY_BYTES,
      errors: [409, 422],
      responses: { 200: Agent, 201: Agent },
    },
    patch: {
      operationId: 'updateAgent',
      method: 'PATCH',
      at: '/{agent_id}',
      summary: 'Changes the fields that are given',
      description: 'null leaves a field unchanged. Lists are replaced as a whole. `status` archives and restores.',
      params: AgentPath,
      body: UpdateAgentRequest,
      bodyLimitBytes: AGENT_BODY_BYTES,
      errors: [409, 422],
      responses: { 200: Agent },
    },
    archive: {
      operationId: 'archiveAgent',
      method: 'DELETE',
      at: '/{agent_id}',
      summary: 'Archives the agent: it leaves the list, and its sessions continue',
      params: AgentPath,
      responses: { 204: null },
    },
    copy: {
      operationId: 'copyAgent',
      method: 'POST',
      at: '/{agent_id}/copy',
      summary: 'Creates an active agent with the same fields and "(copy)" after its name',
      params: AgentPath,
      creates: true,
      responses: { 201: Agent },
    },
    export: {
      operationId: 'exportAgent',
      method: 'GET',
      at: '/{agent_id}/export',
      summary: 'Exports the agent as Markdown with YAML front matter, which can be imported again',
      params: AgentPath,
      responses: { 200: { contentType: 'text/markdown', description: 'A document, as an attachment' } },
    },
  },
)
