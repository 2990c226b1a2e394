import { z } from 'zod'
import { Compacted } from './events.ts'
import { textUpTo } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { ModelRef, SessionId } from './kit/ids.ts'
import { Message, waitSeconds } from './messages.ts'
import { Turn } from './turns.ts'

export const CompactSessionRequest = z
  .object({
    model_id: ModelRef.nullish().meta({ description: "Model that summarises. Default: the session's." }),
    instructions: textUpTo(16 * 1024)
      .nullish()
      .meta({ description: 'What the summary has to keep, for example.' }),
  })
  .meta({ id: 'CompactSessionRequest' })
export type CompactSessionRequest = z.infer<typeof CompactSessionRequest>

export const SessionCompaction = z
  .object({
    turn: Turn,
    summary: Message.nullish().meta({ description: 'Null while the turn runs, and if it failed or was cancelled.' }),
    dropped: Compacted.nullish(),
  })
  .meta({ id: 'SessionCompaction' })
export type SessionCompaction = z.infer<typeof SessionCompaction>

export const compactionEndpoints = group(
  { tag: 'sessions', path: '/v1/sessions/{session_id}/compact', access: 'member' },
  {
    compact: {
      operationId: 'compactSession',
      method: 'POST',
      summary: 'Has a model summarise the conversation; from then on models read the summary instead',
      description:
        'A turn of the session does it, which can be cancelled and counts towards budgets. Answers 200 when it has ended, or 202 when it has not ' +
        'within `wait` seconds, 60 by default. The record keeps all messages. Unless the turn completes, nothing changes. ' +
        'While a turn is unfinished the answer is 409, and 422 when nothing was answered since the last summary.',
      params: z.object({ session_id: SessionId }),
      query: z.object({ wait: waitSeconds }),
      body: CompactSessionRequest,
      bodyOptional: true,
      responses: { 200: SessionCompaction, 202: SessionCompaction },
      errors: [409, 422],
    },
  },
)
