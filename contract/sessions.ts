import { z } from 'zod'
import { CostUsd, DateTime, TokenUsage, textUpTo, unsupported } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { AgentId, ClearableModelRef, HarnessId, ModelRef, SessionId, wireId } from './kit/ids.ts'
import { pagination, repeated, search, time } from './kit/query.ts'
import { capabilityList, missingModel, NamedCapability, ToolDefinition, tagList, toolList } from './tools.ts'

const MiB = 1024 * 1024

export const SessionStatus = z.enum(['started', 'active', 'idle', 'waitingfortoolresults']).meta({
  id: 'SessionStatus',
  description:
    'started: no message yet. active: a turn runs or queues. waitingfortoolresults: a turn waits for its client, and its own ' +
    'status is `waiting`. idle: all turns have ended.',
})

const LastTurnStatus = z.enum(['completed', 'failed', 'cancelled'])

/** Largest number of an agent's version. */
export const MAX_VERSION = 2_147_483_647

/** Where a session was forked. All ids are of the session that it is a fork of, which may have been deleted. */
export const ForkOrigin = z
  .object({
    session_id: wireId('session'),
    turn_id: wireId('turn').nullish().meta({ description: 'The last turn that was copied. Null: none.' }),
    message_id: wireId('message').nullish().meta({ description: 'The message that was edited or posted again.' }),
    data_as_of: z.enum(['snapshot', 'now']).meta({
      description:
        'snapshot: files, databases and values were taken as they were then. now: as they were when it was forked.',
    }),
  })
  .meta({ id: 'ForkOrigin' })
export type ForkOrigin = z.infer<typeof ForkOrigin>

const snapshots = z.boolean().nullish().meta({
  description: 'Whether it keeps its files, databases and values as they were at the end of each turn, for forks.',
})

export const Session = z
  .object({
    id: wireId('session'),
    organization_id: wireId('org'),
    agent_id: wireId('agent').nullish(),
    agent_version: z.int().min(1).nullish().meta({ description: 'Version that its turns run. Null: the newest.' }),
    harness_id: wireId('harness'),
    model_id: wireId('model').nullish(),
    missing_model: missingModel,
    title: z.string().nullish(),
    tags: z.array(z.string()),
    capabilities: z.array(NamedCapability),
    tools: z.array(ToolDefinition),
    approved_tools: z.array(z.string()).meta({
      description: 'Names of the tools that a person lets run without an approval in this session.',
    }),
    draft_prompt: z.string().nullish().meta({ description: 'Only in answers with one session; null in lists.' }),
    features: z.array(z.string()),
    status: SessionStatus,
    last_turn_status: LastTurnStatus.nullish().meta({
      description: 'Status of the turn that ended last. Null until a turn has ended.',
    }),
    preview: z.string().nullish(),
    output_preview: z.string().nullish(),
    is_pinned: z.boolean().nullish(),
    snapshots,
    forked_from: ForkOrigin.nullish(),
    active_schedule_count: z.int().min(0).nullish(),
    usage: TokenUsage.nullish(),
    cost_usd: CostUsd.nullish(),
    created_at: DateTime,
    updated_at: DateTime,
    started_at: DateTime.nullish(),
    finished_at: DateTime.nullish(),
  })
  .meta({ id: 'Session' })
export type Session = z.infer<typeof Session>

export const CreateSessionRequest = z
  .object({
    agent_id: AgentId.nullish(),
    agent_version: z.int().min(1).max(MAX_VERSION).nullish().meta({
      description: 'Version of the agent that its turns run. Default: the newest when a message comes.',
    }),
    agent: unsupported('give agent_id'),
    agent_name: unsupported('give agent_id'),
    assistant_id: unsupported('give agent_id'),
    instructions: unsupported('give agent_id, of an agent that has them as its system_prompt'),
    system_prompt: unsupported('give agent_id, of an agent that has it'),
    harness_id: HarnessId.nullish(),
    harness_name: unsupported('give harness_id'),
    model_id: ModelRef.nullish(),
    model: unsupported('give model_id'),
    title: textUpTo(2048).nullish(),
    tags: tagList.optional(),
    capabilities: capabilityList.optional(),
    tools: toolList.optional(),
    draft_prompt: textUpTo(MiB)
      .nullish()
      .meta({
        description:
          "Prompt that its turns run instead of the agent's, and without the agent's capabilities and tools, in whose place are " +
          "its own: for trying changes before they are saved. The agent's limits and output schema still apply.",
      }),
    snapshots,
  })
  .meta({ id: 'CreateSessionRequest' })
export type CreateSessionRequest = z.infer<typeof CreateSessionRequest>

/** Maximum number of tools that run without an approval in a session. */
export const MAX_APPROVED_TOOLS = 250

/** Changes to a session. Fields that are null or absent stay as they are; lists are replaced as a whole. */
export const UpdateSessionRequest = z
  .object({
    agent_version: z.int().min(0).max(MAX_VERSION).nullish().meta({
      description: 'Version of the agent that its next turns run; 0: the newest again.',
    }),
    model_id: ClearableModelRef.nullish(),
    model: unsupported('give model_id'),
    title: textUpTo(2048).nullish(),
    tags: tagList.nullish(),
    capabilities: capabilityList.nullish(),
    tools: toolList.nullish(),
    approved_tools: z.array(z.string().max(64)).max(MAX_APPROVED_TOOLS).nullish().meta({
      description: 'Names to keep: the other tools ask again. Only an approval adds a tool.',
    }),
  })
  .meta({ id: 'UpdateSessionRequest' })
export type UpdateSessionRequest = z.infer<typeof UpdateSessionRequest>

/** Number up to which sessions are counted that match a filter. */
export const MAX_COUNTED = 10_000

const SessionPath = z.object({ session_id: SessionId })

const SessionPage = z.object({
  data: z.array(Session),
  total: z.int().min(0),
  offset: z.int().min(0),
  limit: z.int().min(0),
})

export const sessionEndpoints = group(
  { tag: 'sessions', path: '/v1/sessions', access: 'member' },
  {
    list: {
      operationId: 'listSessions',
      method: 'GET',
      summary: "Lists sessions: the caller's pinned sessions first, then the newest",
      description: `With other filters than agent_id, total counts up to ${MAX_COUNTED} sessions.`,
      query: z.object({
        agent_id: AgentId.optional(),
        status: SessionStatus.optional(),
        last_turn_status: LastTurnStatus.optional(),
        tag: repeated(z.string().max(255), 20).meta({
          type: 'array',
          items: { type: 'string' },
          description: 'All of these tags; repeat the key.',
        }),
        from: time.meta({ format: 'date-time', description: 'Created at or after this time.' }).optional(),
        to: time.meta({ format: 'date-time', description: 'Created before this time.' }).optional(),
        search: search.optional(),
        ...pagination,
      }),
      responses: { 200: SessionPage },
      errors: [422],
    },
    create: {
      operationId: 'createSession',
      method: 'POST',
      summary: 'Creates a session, with an agent or without',
      body: CreateSessionRequest,
      bodyOptional: true,
      bodyLimitBytes: 3 * MiB,
      creates: true,
      responses: { 201: Session },
      errors: [422],
    },
    get: {
      operationId: 'getSession',
      method: 'GET',
      at: '/{session_id}',
      summary: 'Gets a session',
      params: SessionPath,
      responses: { 200: Session },
    },
    patch: {
      operationId: 'updateSession',
      method: 'PATCH',
      at: '/{session_id}',
      summary: 'Changes the fields that are given',
      description:
        'Changes of model, capabilities and tools apply from the next model call. A model_id of "" removes the session\'s own.',
      params: SessionPath,
      body: UpdateSessionRequest,
      responses: { 200: Session },
      errors: [422],
    },
    delete: {
      operationId: 'deleteSession',
      method: 'DELETE',
      at: '/{session_id}',
      summary: 'Cancels the turns of a session and deletes it with all its data',
      params: SessionPath,
      responses: { 204: null },
    },
    pin: {
      operationId: 'pinSession',
      method: 'PUT',
      at: '/{session_id}/pin',
      summary: "Pins the session to the top of the caller's list",
      params: SessionPath,
      responses: { 204: null },
      errors: [409],
    },
    unpin: {
      operationId: 'unpinSession',
      method: 'DELETE',
      at: '/{session_id}/pin',
      summary: "Unpins the session from the top of the caller's list",
      params: SessionPath,
      responses: { 204: null },
    },
  },
)
