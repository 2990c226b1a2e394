import { z } from 'zod'
import { DateTime, listOf, TokenUsage } from './common.ts'
import { defineEndpoint, type Endpoint } from './endpoint.ts'
import { MessageId, SessionId, SessionPathId, TurnId } from './ids.ts'
import { pagination } from './query.ts'

export const TurnStatus = z
  .enum(['queued', 'active', 'waiting', 'completed', 'failed', 'cancelled'])
  .meta({ id: 'TurnStatus' })

export const Turn = z
  .object({
    id: TurnId,
    session_id: SessionId,
    status: TurnStatus,
    input_message_id: MessageId,
    iterations: z.int().min(0),
    usage: TokenUsage,
    error: z.string().nullish(),
    error_code: z.string().nullish(),
    workflow_id: z.string(),
    pending_tool_calls: z.array(
      z.object({ id: z.string(), name: z.string(), arguments: z.record(z.string(), z.unknown()) }),
    ),
    created_at: DateTime,
    started_at: DateTime.nullish(),
    finished_at: DateTime.nullish(),
  })
  .meta({ id: 'Turn' })
export type Turn = z.infer<typeof Turn>

export const turnEndpoints = {
  list: defineEndpoint({
    method: 'GET',
    path: '/v1/sessions/{session_id}/turns',
    tag: 'turns',
    summary: "Lists a session's turns, newest first",
    params: z.object({ session_id: SessionPathId }),
    query: z.object({ status: TurnStatus.optional(), ...pagination }),
    responses: { 200: listOf(Turn) },
    errors: [400, 404],
  }),
  get: defineEndpoint({
    method: 'GET',
    path: '/v1/sessions/{session_id}/turns/{turn_id}',
    tag: 'turns',
    summary: 'Gets a turn',
    params: z.object({ session_id: SessionPathId, turn_id: TurnId }),
    responses: { 200: Turn },
    errors: [400, 404],
  }),
} satisfies Record<string, Endpoint>
