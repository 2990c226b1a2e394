import { z } from 'zod'
import { DateTime } from './kit/common.ts'
import { group } from './kit/endpoint.ts'

const count = (description: string) =>
  z
    .int()
    .min(0)
    .nullable()
    .meta({ description: `${description} Null if Temporal did not answer.` })

const executions = (what: string) =>
  z.object({
    running: count(`${what} that have not ended.`),
    failed: count(`${what} that failed, timed out or were terminated within the last hour.`),
  })

export const DurableHealth = z
  .object({
    status: z.enum(['healthy', 'warning', 'degraded']).meta({
      description:
        'degraded: Temporal does not answer all queries, or no worker polls. warning: tasks have waited for more than 10 s, or ' +
        'more than a tenth of the workflows that ended within the last hour failed.',
    }),
    reasons: z.array(z.string()).meta({ description: 'A sentence for each reason why the service is not healthy.' }),
    workers: count('Worker processes that have polled the task queue within the last 75 s.'),
    task_queue_backlog: count('Approximate number of tasks that wait for a worker.'),
    turns: executions('Workflows of turns').extend({
      retrying: z.int().min(0).nullable().meta({
        description: 'Turns whose failed model call is being retried. Null if Postgres did not answer.',
      }),
      stalled: z.int().min(0).nullish().meta({
        description: 'Active turns without an event for TURN_STALLED_SECS. Null if Postgres did not answer.',
      }),
    }),
    executions: executions('Workflows of executions of schedules'),
  })
  .meta({ id: 'DurableHealth' })
export type DurableHealth = z.infer<typeof DurableHealth>

/** Data of the event `snapshot`. */
export const DurableSnapshot = z
  .object({ ts: DateTime.meta({ description: 'When Temporal was asked.' }), health: DurableHealth })
  .meta({ id: 'DurableSnapshot' })
export type DurableSnapshot = z.infer<typeof DurableSnapshot>

export const durableEndpoints = group(
  { tag: 'durable', path: '/v1/durable', access: 'operator' },
  {
    stream: {
      operationId: 'streamDurableHealth',
      method: 'GET',
      at: '/sse',
      summary: 'Streams the health of durable execution, as reported by Temporal',
      description:
        'For administrators of the default organization. Sends a snapshot at the start, and whenever anything except ts has changed.',
      responses: {},
      streams: 'Server-Sent Events: connected, then snapshots, disconnecting before the server closes',
      streamed: DurableSnapshot,
    },
  },
)
