import { z } from 'zod'
import { CostUsd, DateTime } from './kit/common.ts'
import { fileBody, group } from './kit/endpoint.ts'
import { AgentId, ApiKeyId, SessionId, UserId, wireId, wireUuid } from './kit/ids.ts'
import { limitUpTo, offset, repeated, time } from './kit/query.ts'

export const UsageGroup = z.enum(['hour', 'day', 'agent', 'model', 'user', 'api_key', 'session'])
export type UsageGroup = z.infer<typeof UsageGroup>

const sum = z.int().min(0).meta({ format: 'int64' })
const sums = {
  calls: sum.meta({ description: 'Finished model calls.' }),
  input_tokens: sum,
  output_tokens: sum,
  cache_read_tokens: sum,
  cache_creation_tokens: sum,
  cost_usd: CostUsd.meta({ description: 'Cost of the calls with a known price.' }),
  unpriced_calls: sum.meta({ description: 'Calls with an unknown price.' }),
}

export const UsageRow = z
  .object({
    start: DateTime.nullish().meta({ description: 'Begin of the hour or day, in UTC.' }),
    agent_id: wireId('agent').nullish(),
    agent_name: z.string().nullish(),
    model: z.string().nullish(),
    user_id: wireUuid.nullish(),
    user_email: z.string().nullish(),
    api_key_id: wireUuid.nullish(),
    api_key_name: z.string().nullish(),
    session_id: wireId('session').nullish(),
    session_title: z.string().nullish(),
    ...sums,
  })
  .meta({
    id: 'UsageRow',
    description: 'The fields of what it is grouped by, null for none, and the sums. Names of deleted things are null.',
  })
export type UsageRow = z.infer<typeof UsageRow>

export const Usage = z
  .object({ data: z.array(UsageRow), total: z.object(sums), from: DateTime, to: DateTime, has_more: z.boolean() })
  .meta({ id: 'Usage' })
export type Usage = z.infer<typeof Usage>

/** Largest number of rows of one answer. */
export const MAX_USAGE_ROWS = 10_000

export const usageEndpoints = group(
  { tag: 'usage', path: '/v1/usage', access: 'admin' },
  {
    get: {
      operationId: 'getUsage',
      method: 'GET',
      summary: 'Sums the usage of model calls',
      description:
        'It counts each finished call in the hour in which it finished, also in turns that failed or were cancelled, and is kept when sessions are deleted. `from` and `to` are rounded down to hours. With Accept: text/csv the rows are CSV.',
      query: z.object({
        group_by: repeated(UsageGroup, UsageGroup.options.length).meta({
          type: 'array',
          items: { type: 'string', enum: UsageGroup.options },
          description: 'May be repeated. Without it: one row.',
        }),
        from: time.optional().meta({ description: 'Default: 30 days before `to`.' }),
        to: time.optional().meta({ description: 'Default: the end of the current hour.' }),
        agent_id: AgentId.optional(),
        session_id: SessionId.optional(),
        user_id: UserId.optional(),
        api_key_id: ApiKeyId.optional(),
        model: z.string().max(255).optional(),
        limit: limitUpTo(MAX_USAGE_ROWS, 1000),
        offset,
      }),
      responses: { 200: Usage },
      file: fileBody('text/csv', 'The rows, when Accept asks for it.'),
    },
  },
)
