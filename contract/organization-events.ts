import { z } from 'zod'
import { DateTime } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { AgentId, wireId } from './kit/ids.ts'
import { repeated } from './kit/query.ts'

export const OrganizationEventType = z
  .enum([
    'turn.completed',
    'turn.failed',
    'turn.cancelled',
    'turn.waiting',
    'execution.failed',
    'budget.reached',
    'tools.changed',
  ])
  .meta({ id: 'OrganizationEventType' })
export type OrganizationEventType = z.infer<typeof OrganizationEventType>

/** Something that an organization is told of, by its event stream and by webhooks. */
export const OrganizationEvent = z
  .object({
    id: z.string().meta({ description: 'Its number among the events of the organization.' }),
    type: OrganizationEventType,
    timestamp: DateTime,
    agent_id: wireId('agent').nullish(),
    session_id: wireId('session').nullish(),
    turn_id: wireId('turn').nullish(),
    data: z.record(z.string(), z.unknown()).meta({
      description:
        'Of a turn: {turn}, as GET returns it at the time of reading, with the calls that wait; null if its session is deleted.',
    }),
  })
  .meta({ id: 'OrganizationEvent' })
export type OrganizationEvent = z.infer<typeof OrganizationEvent>

/** Type of the event that tells a reader of events that it cannot have any more. */
export const GAP = 'gap'

/** Event of the stream: of the organization, or the stream's own `gap`. */
export const StreamedOrganizationEvent = OrganizationEvent.extend({
  type: z.enum([...OrganizationEventType.options, GAP]),
}).meta({
  id: 'StreamedOrganizationEvent',
  description:
    'The type gap says that events after data.after, up to this id, were deleted before they could be sent: read the lists anew.',
})
export type StreamedOrganizationEvent = z.infer<typeof StreamedOrganizationEvent>

const known = OrganizationEventType.options
const eventType = z.enum(known, { error: `must be one of ${known.join(', ')}; repeat the key for several` })

export const organizationEventEndpoints = group(
  { tag: 'events', path: '/v1/events', access: 'member' },
  {
    stream: {
      operationId: 'streamOrganizationEvents',
      method: 'GET',
      at: '/sse',
      summary: 'Streams what happens in all sessions of the organization: ends of turns, waiting calls, failures',
      description:
        'Begins with the present, or resumes after since_id, or after the Last-Event-ID header when since_id is absent. The ' +
        'frame connected has the id after which the stream begins. since_id=0 begins with the oldest event that is kept.',
      query: z.object({
        since_id: z
          .string()
          .optional()
          .meta({ description: 'Exclusive: the id of the last event that the client has.' }),
        types: repeated(eventType, known.length).meta({
          type: 'array',
          items: { type: 'string', enum: known },
          maxItems: known.length,
          description: 'Only these types; repeat the key.',
        }),
        agent_id: AgentId.optional().meta({ description: "Only events of this agent's sessions." }),
      }),
      responses: {},
      streams: 'Server-Sent Events: connected, then every event by its type, disconnecting before the server closes',
      streamed: StreamedOrganizationEvent,
    },
  },
)
