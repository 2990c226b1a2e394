import { z } from 'zod'
import { textUpTo } from '../../../contract/kit/common.ts'
import { type Endpoint, group } from '../../../contract/kit/endpoint.ts'
import { SessionId, TurnId } from '../../../contract/kit/ids.ts'
import { MAX_MESSAGE_TEXT_BYTES } from '../../../contract/messages.ts'
import { RequestedCall, SubmitToolResultsRequest, TurnStatus } from '../../../contract/turns.ts'

/** What crosses the wire at /v1/mcp. The operations are not in the OpenAPI document: MCP has its own listing. */
export const mcpFaceEndpoints = group(
  { tag: 'faces', path: '/v1/mcp', access: 'member' },
  {
    exchange: {
      operationId: 'exchangeMcp',
      method: 'POST',
      summary: 'Serves one message of the Model Context Protocol',
      body: z.unknown(),
      responses: { 200: z.unknown(), 202: null },
      streams: 'Messages of the protocol, up to the answer',
      errors: [404, 406],
    },
  },
)

/** Description of a protected resource by RFC 9728. */
export const ResourceMetadata = z.object({
  resource: z.string(),
  resource_name: z.string(),
  bearer_methods_supported: z.array(z.string()),
})

export const resourceMetadataEndpoint = {
  operationId: 'getResourceMetadata',
  method: 'GET',
  path: '/.well-known/oauth-protected-resource/{path*}',
  tag: 'faces',
  access: 'public',
  summary: 'Describes how callers of /v1/mcp authenticate',
  params: z.object({ path: z.string() }),
  responses: { 200: ResourceMetadata },
} as const satisfies Endpoint

/** Hosts give a call of a tool about a minute. */
const MAX_WAIT_SECONDS = 50
const DEFAULT_WAIT_SECONDS = 25
const MAX_REASON_BYTES = 2048
const MAX_NAME_BYTES = 2048

const session = SessionId.meta({ description: 'The session of an earlier answer.' })
const turn = TurnId.optional().meta({ description: 'A turn of an earlier answer. Default: the newest.' })
const message = textUpTo(MAX_MESSAGE_TEXT_BYTES).min(1, { error: 'must not be empty' })
const wait_seconds = z
  .number()
  .min(0)
  .max(MAX_WAIT_SECONDS)
  .default(DEFAULT_WAIT_SECONDS)
  .meta({ description: 'Seconds to wait for the answer. The agent goes on afterwards.' })

const agent = z.string().min(1, { error: 'must not be empty' }).max(MAX_NAME_BYTES)

/**
 * Returns the arguments of agent_start. The names are offered as an enum, but any name is parsed, because an agent's id
 * is accepted too and the domain knows better what is wrong with a name.
 */
export const agentStartArguments = (names: string[]) =>
  z.object({
    agent: agent.meta({
      description: 'Name or id of the agent.',
      ...(names.length === 0 ? {} : { enum: names }),
    }),
    message: message.meta({ description: 'What the agent is to do or answer, with all it needs to know.' }),
    session: SessionId.optional().meta({ description: 'Session to continue. Default: a new one.' }),
    wait_seconds,
  })
export type AgentStartArguments = z.output<ReturnType<typeof agentStartArguments>>

export const AgentGetArguments = z.object({ session, turn, wait_seconds })
export type AgentGetArguments = z.output<typeof AgentGetArguments>

const MAX_ANSWERS = 128
const submitted = SubmitToolResultsRequest.shape.tool_results.element.shape

const CallResult = z.object({
  call_id: z.string(),
  result: submitted.result.meta({ description: 'What the tool returned, any JSON.' }),
  error: submitted.error
    .unwrap()
    .unwrap()
    .optional()
    .meta({ description: 'Why the tool failed, instead of a result.' }),
})
export type CallResult = z.output<typeof CallResult>

const Approval = z.object({
  call_id: z.string(),
  approved: z.boolean(),
  reason: textUpTo(MAX_REASON_BYTES).optional().meta({ description: 'For the agent, why the call is refused.' }),
})
export type Approval = z.output<typeof Approval>

export const AgentSendArguments = z.object({
  session,
  message: message.optional().meta({ description: 'The next message. It cancels a turn that waits for calls.' }),
  results: z.array(CallResult).max(MAX_ANSWERS).optional().meta({ description: 'Results of pending client tools.' }),
  approvals: z.array(Approval).max(MAX_ANSWERS).optional().meta({ description: 'Decisions on pending approvals.' }),
  wait_seconds,
})
export type AgentSendArguments = z.output<typeof AgentSendArguments>

export const AgentCancelArguments = z.object({
  session,
  turn: TurnId.optional().meta({ description: 'Only this turn. Default: all that are unfinished.' }),
})
export type AgentCancelArguments = z.output<typeof AgentCancelArguments>

/**
 * Structured result of all four tools. It is open: clients check it with the schema that they have kept. `idle`: the
 * session has had no message yet.
 */
export const AgentAnswer = z.looseObject({
  session: z.string(),
  turn: z.string().optional(),
  status: z.enum([...TurnStatus.options, 'idle']),
  text: z.string().optional().meta({ description: "The agent's newest message in this turn." }),
  pending: z
    .array(z.looseObject(RequestedCall.shape))
    .meta({ description: 'Calls that wait for agent_send: approvals, and results of client tools.' }),
  error: z.string().optional(),
})
export type AgentAnswer = z.infer<typeof AgentAnswer>

/**
 * State of a request that asks its user. It carries no authority: any caller may name a turn in agent_get.
 */
export const AskedTurn = z.object({ session: SessionId, turn: TurnId })
export type AskedTurn = z.output<typeof AskedTurn>

/** A user's answer to the question whether a call may run. */
export const Consent = z.object({
  action: z.enum(['accept', 'decline', 'cancel']),
  content: z.object({ approved: z.boolean().nullish(), reason: z.string().nullish() }).nullish(),
})

/** Form of that question: flat, as elicitation demands it. */
export const CONSENT_FORM = {
  type: 'object' as const,
  properties: {
    approved: { type: 'boolean' as const, title: 'Allow', description: 'Whether the call may run' },
    reason: { type: 'string' as const, title: 'Reason', description: 'For the agent, if the call may not run' },
  },
  required: ['approved'],
}
