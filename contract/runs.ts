import { z } from 'zod'
import { TurnErrorCode } from './errors.ts'
import { group } from './kit/endpoint.ts'
import { AgentId, SessionId, UserId } from './kit/ids.ts'
import { flag, limitUpTo, offset, repeated, search, time } from './kit/query.ts'
import { Turn, TurnStatus } from './turns.ts'

const STATUSES = TurnStatus.options.length
const MAX_OFFSET = 10_000

const created = (what: string) => time.meta({ format: 'date-time', description: `Created ${what} this time.` })
const stalled = 'Only active turns without an event for a quarter of an hour, or TURN_STALLED_SECS.'

const filters = {
  agent_id: AgentId.optional(),
  session_id: SessionId.optional(),
  user_id: UserId.optional(),
  error_code: TurnErrorCode.optional(),
  from: created('at or after').optional(),
  to: created('before').optional(),
  search: search.optional(),
}

const query = {
  status: repeated(TurnStatus, STATUSES).meta({
    type: 'array',
    items: { $ref: '#/components/schemas/TurnStatus' },
    description: 'Any of these statuses; repeat the key. Default: all.',
  }),
  stalled: flag.meta({ description: stalled }),
  ...filters,
}

export const TurnPage = z
  .object({
    data: z.array(Turn),
    next: z.string().nullable().meta({ description: 'Cursor for `after`. Null at the end of the list.' }),
  })
  .meta({ id: 'TurnPage' })

const count = z.int().min(0)

export const TurnCounts = z
  .object({
    queued: count,
    active: count,
    waiting: count,
    completed: count,
    failed: count,
    cancelled: count,
    stalled: count.meta({ description: 'Active turns that are stalled.' }),
  })
  .meta({ id: 'TurnCounts' })
export type TurnCounts = z.infer<typeof TurnCounts>

/** Strict, because a filter with a misspelled name would stop more turns than its caller means. */
export const TurnsToCancel = z
  .strictObject({
    ...filters,
    status: z.array(TurnStatus).min(1).max(STATUSES).optional().meta({ description: 'Any of these statuses.' }),
    stalled: z.boolean().optional().meta({ description: stalled }),
    all: z.boolean().optional().meta({ description: 'True, without a filter: all unfinished turns.' }),
  })
  .meta({ id: 'TurnsToCancel' })

export const CancelledTurns = z
  .object({
    cancelled: count,
    more: z.boolean().meta({ description: 'True if turns are left: repeat the request.' }),
  })
  .meta({ id: 'CancelledTurns' })
export type CancelledTurns = z.infer<typeof CancelledTurns>

export const runEndpoints = group(
  { tag: 'turns', path: '/v1/turns', access: 'member' },
  {
    list: {
      // The name of release 1.0, which listed waiting turns only.
      operationId: 'listWaitingTurns',
      method: 'GET',
      summary: 'Lists the turns of all sessions, newest first or longest running first',
      description:
        'With status=waiting: the turns that wait for their client, each with its calls that wait for a result or an approval.',
      query: z.object({
        ...query,
        order: z.enum(['newest', 'longest']).default('newest').meta({
          description: 'longest: only turns that have begun and not ended, in the order in which they began.',
        }),
        after: z
          .string()
          .max(100)
          .optional()
          .meta({ description: '`next` of the page before, with the same filters.' }),
        limit: limitUpTo(100, 20),
        offset: offset.refine((skip) => skip <= MAX_OFFSET, { error: `must be at most ${MAX_OFFSET}; use after` }),
      }),
      responses: { 200: TurnPage },
      errors: [422],
    },
    count: {
      operationId: 'countTurns',
      method: 'GET',
      at: '/counts',
      summary: 'Counts the turns of all sessions by their statuses',
      query: z.object(query),
      responses: { 200: TurnCounts },
      errors: [422],
    },
    cancel: {
      operationId: 'cancelTurnsOfSessions',
      method: 'POST',
      at: '/cancel',
      summary: 'Cancels the unfinished turns that match, of all sessions',
      description:
        'Needs a filter, or all: true. Turns have ended when the response arrives. What an interrupted request has cancelled stays cancelled.',
      body: TurnsToCancel,
      responses: { 200: CancelledTurns },
      errors: [422],
    },
  },
)
