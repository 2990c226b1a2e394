import { z } from 'zod'
import { TurnErrorCode } from './errors.ts'
import { CostUsd, DateTime, jsonUpTo, listOf, nameUpTo, TokenUsage, textUpTo, unsupported } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { SessionId, TurnId, wireId, wireUuid } from './kit/ids.ts'
import { pagination } from './kit/query.ts'
import { TurnOutput } from './output-schema.ts'

export const TurnStatus = z
  .enum(['queued', 'active', 'waiting', 'completed', 'failed', 'cancelled'])
  .meta({ id: 'TurnStatus' })

/** Beginning of the error of a call that its user has refused. A reason may follow. */
export const NOT_APPROVED = 'The user did not approve this call'

/** Name of the calls by which a tool asks its user. */
export const QUESTION_TOOL = 'mcp_elicitation'

/** Result of such a call, in the terms of MCP's elicitation. */
export const QuestionAnswer = z.object({
  action: z.enum(['accept', 'decline', 'cancel']),
  content: z.record(z.string(), z.unknown()).optional(),
})
export type QuestionAnswer = z.infer<typeof QuestionAnswer>

/** Call that waits for its client: for a result, or for a user's approval before the service runs it. */
export const RequestedCall = z
  .object({
    id: z.string(),
    name: z.string(),
    arguments: z.record(z.string(), z.unknown()),
    kind: z.enum(['client_tool', 'approval']),
  })
  .meta({
    id: 'RequestedCall',
    description: `A call named ${QUESTION_TOOL} is a tool's question to the user: its arguments are {tool, tool_call_id, message} and requested_schema, or url. Its result is {"action": "accept", "content": {…}}, {"action": "decline"} or {"action": "cancel"}.`,
  })
export type RequestedCall = z.infer<typeof RequestedCall>

export const Takeover = z
  .object({
    iteration: z.int().min(1).meta({ description: 'Number of the model call that was lost, or that called the tool.' }),
    tool_call_id: z.string().nullish().meta({ description: 'Null for a model call.' }),
    span_id: z.string().meta({ description: "Span of the step in the context of the turn's events." }),
    reason: z.enum(['process_stopped', 'process_lost', 'retried']).meta({
      description:
        'Why the attempt before did not end the step: its process stopped, its process died or was cut off, or it failed in a process that lives.',
    }),
    begun_at: DateTime.nullish().meta({ description: 'Begin of the attempt before.' }),
    lost_at: DateTime.meta({ description: 'Last sign of life of the attempt before.' }),
    taken_over_at: DateTime.meta({ description: 'Begin of the attempt that went on.' }),
    from_process: z.string().nullish().meta({ description: 'Process of the attempt before, as <process id>@<host>.' }),
    to_process: z.string().nullish().meta({ description: 'Process of the attempt that went on.' }),
  })
  .meta({ id: 'Takeover' })
export type Takeover = z.infer<typeof Takeover>

export const FINISH_REASON =
  "Why the answer ended, if not by itself: length, content_filter, or the provider's own reason."

export const Turn = z
  .object({
    id: wireId('turn'),
    session_id: wireId('session'),
    agent_id: wireId('agent').nullish().meta({ description: 'Agent of its session when the message was posted.' }),
    agent_version: z.int().min(1).nullish().meta({
      description: 'Version of the agent that all its steps use. Null for turns of releases before 1.1.',
    }),
    user_id: wireUuid.nullish().meta({ description: 'User who posted the message. Null for a schedule.' }),
    api_key_id: wireUuid.nullish().meta({ description: 'API key that posted the message. Null for a login.' }),
    status: TurnStatus,
    stalled: z.boolean().nullish().meta({
      description: 'True for an active turn without an event for a quarter of an hour, or TURN_STALLED_SECS.',
    }),
    input_message_id: wireId('message'),
    input_preview: z
      .string()
      .nullish()
      .meta({ description: 'Beginning of the message. Null for turns of release 1.0 and before.' }),
    iterations: z.int().min(0),
    usage: TokenUsage,
    cost_usd: CostUsd.nullish(),
    parent: z
      .object({ session_id: wireId('session'), turn_id: wireId('turn') })
      .nullish()
      .meta({ description: 'Turn of the agent that has asked for this one.' }),
    children: z
      .object({ turns: z.int().min(1), usage: TokenUsage, cost_usd: CostUsd.nullish() })
      .nullish()
      .meta({
        description: 'Sum of the turns by which other agents answered its calls, and of the turns below those.',
      }),
    error: z.string().nullish(),
    error_code: TurnErrorCode.nullish(),
    finish_reason: z.string().nullish().meta({ description: FINISH_REASON }),
    output: TurnOutput.nullish(),
    takeovers: z.array(Takeover).nullish().meta({
      description: 'The latest steps, up to 20, that a new attempt has taken over from a lost one. Absent without any.',
    }),
    workflow_id: z.string(),
    pending_tool_calls: z.array(RequestedCall),
    created_at: DateTime,
    started_at: DateTime.nullish(),
    finished_at: DateTime.nullish(),
  })
  .meta({ id: 'Turn' })
export type Turn = z.infer<typeof Turn>

export const CancelTurnRequest = z
  .object({ turn_id: TurnId.nullish().meta({ description: 'Only this turn, running or queued. Default: all.' }) })
  .meta({ id: 'CancelTurnRequest' })

export const CancelTurnResponse = z
  .object({ status: z.enum(['cancelled', 'no_op']), message: z.string() })
  .meta({ id: 'CancelTurnResponse' })
export type CancelTurnResponse = z.infer<typeof CancelTurnResponse>

const RESULT_BYTES = 100 * 1024
/** Maximum number of results, equal to the maximum number of tool calls in one answer of a model. */
const MAX_RESULTS = 128

const ClientToolResult = z
  .object({
    tool_call_id: z.string(),
    result: jsonUpTo(z.unknown(), RESULT_BYTES).optional(),
    error: textUpTo(RESULT_BYTES).nullish(),
    output: unsupported('give result'),
    content: unsupported('give result'),
  })
  .meta({ id: 'ClientToolResult', description: 'One of result and error is required. With both, error wins.' })

export const SubmitToolResultsRequest = z
  .object({
    tool_results: z
      .array(ClientToolResult)
      .min(1, { error: 'must have at least one result' })
      .max(MAX_RESULTS, { error: `must have at most ${MAX_RESULTS} results` }),
    tool_outputs: unsupported('give tool_results'),
  })
  .meta({ id: 'SubmitToolResultsRequest' })
export type SubmitToolResultsRequest = z.infer<typeof SubmitToolResultsRequest>

export const SubmittedToolResults = z
  .object({ accepted: z.int().min(0), status: z.string() })
  .meta({ id: 'SubmittedToolResults' })
export type SubmittedToolResults = z.infer<typeof SubmittedToolResults>

export const ToolCallLease = z
  .object({
    expires_at: DateTime,
    expires_in_ms: z.int().min(0).meta({ description: 'Time for which the lease was given. Renew it after a third.' }),
  })
  .meta({ id: 'ToolCallLease' })
export type ToolCallLease = z.infer<typeof ToolCallLease>

const holder = nameUpTo(128).meta({ description: 'Any text that no other program has, such as a random one.' })
const ofToolCall = z.object({ session_id: SessionId, tool_call_id: z.string().min(1) })

const TOOL_RESULTS_BODY_BYTES = 16 * 1024 * 1024

export const turnEndpoints = group(
  { tag: 'turns', path: '/v1/sessions/{session_id}', access: 'member' },
  {
    list: {
      operationId: 'listTurns',
      method: 'GET',
      at: '/turns',
      summary: "Lists a session's turns, newest first",
      params: z.object({ session_id: SessionId }),
      query: z.object({ status: TurnStatus.optional(), ...pagination }),
      responses: { 200: listOf(Turn) },
    },
    get: {
      operationId: 'getTurn',
      method: 'GET',
      at: '/turns/{turn_id}',
      summary: 'Gets a turn',
      params: z.object({ session_id: SessionId, turn_id: TurnId }),
      responses: { 200: Turn },
    },
    cancel: {
      operationId: 'cancelTurns',
      method: 'POST',
      at: '/cancel',
      summary: 'Cancels all unfinished turns of a session, or one of them',
      description:
        'The streamed part of an answer is kept as a message; calls without a result end as cancelled. The turns have ended when the response arrives.',
      params: z.object({ session_id: SessionId }),
      body: CancelTurnRequest,
      bodyOptional: true,
      responses: { 200: CancelTurnResponse },
    },
    submitToolResults: {
      operationId: 'submitToolResults',
      method: 'POST',
      at: '/tool-results',
      summary: 'Submits results of client tools, or approvals',
      description:
        'Either all results are accepted or none. The turn continues when every pending call has one. The result of a call that waits for approval is {"approved": true} or {"approved": false}. With "for": "session" its tool runs without an approval from then on in this session; the model reads the "reason" of a denial.',
      params: z.object({ session_id: SessionId }),
      body: SubmitToolResultsRequest,
      bodyLimitBytes: TOOL_RESULTS_BODY_BYTES,
      responses: { 200: SubmittedToolResults },
      errors: [409],
    },
    leaseToolCall: {
      operationId: 'leaseToolCall',
      method: 'POST',
      at: '/tool-calls/{tool_call_id}/lease',
      summary: "Leases a pending call of a client's tool, or renews the lease",
      description:
        'Keeps several programs from running one call. While the lease lasts, another holder gets 409 with Retry-After. It is ' +
        'advice: the first result counts, with or without a lease, and ends it. A call that is not pending gets 409 not_waiting.',
      params: ofToolCall,
      body: z.object({ holder }).meta({ id: 'LeaseToolCallRequest' }),
      responses: { 200: ToolCallLease },
      errors: [409],
    },
    releaseToolCall: {
      operationId: 'releaseToolCall',
      method: 'DELETE',
      at: '/tool-calls/{tool_call_id}/lease',
      summary: "Ends a holder's lease, if it has one",
      params: ofToolCall,
      query: z.object({ holder }),
      responses: { 204: null },
    },
  },
)
