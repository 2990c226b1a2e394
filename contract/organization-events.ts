import { z } from 'zod'
import { DateTime } from './kit/common.ts'
import { wireId } from './kit/ids.ts'

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
