import { z } from 'zod'
import { textUpTo } from './kit/common.ts'

const HOUR_SECONDS = 3600
/** Time limits of one attempt of an activity, and of a workflow. */
const MAX_ACTIVITY_SECONDS = 24 * HOUR_SECONDS
const MAX_WORKFLOW_SECONDS = 30 * 24 * HOUR_SECONDS

const seconds = (most: number) =>
  z
    .int({ error: 'must be a whole number of seconds' })
    .min(1, { error: 'must be 1 or more' })
    .max(most, { error: `must be at most ${most}` })

/** Name of a task queue that can be registered. The queues of the service and of Temporal have other characters too. */
export const TaskQueueName = z
  .string()
  .regex(/^[a-zA-Z0-9][a-zA-Z0-9._-]{0,127}$/, {
    error: 'must be 1 to 128 letters, digits, ".", "_" or "-", and begin with a letter or digit',
  })
  .meta({ maxLength: 128 })

const typeName = textUpTo(256).min(1, { error: 'must not be empty' })

const TemporalRetry = z
  .object({
    maximum_attempts: z.int().min(1).max(20).meta({ description: 'With the first one.' }),
    initial_interval_seconds: seconds(HOUR_SECONDS).optional().meta({ description: 'Default: 1.' }),
    backoff_coefficient: z.number().min(1).max(10).optional().meta({ description: 'Default: 2.' }),
    maximum_interval_seconds: seconds(HOUR_SECONDS).optional().meta({ description: 'Default: 60.' }),
  })
  .meta({ id: 'TemporalRetry' })
export type TemporalRetry = z.infer<typeof TemporalRetry>

/** Fields of a tool that a worker of the organization runs, besides its name, description and parameters. */
export const temporalFields = {
  task_queue: TaskQueueName.meta({ description: 'A registered task queue.' }),
  activity: typeName.optional().meta({ description: 'Type of the activity that runs a call.' }),
  workflow: typeName.optional().meta({ description: 'Type of the workflow that runs a call, instead of an activity.' }),
  timeout_seconds: seconds(MAX_WORKFLOW_SECONDS)
    .optional()
    .meta({ description: 'Limit of an attempt of an activity, up to 24 hours, or of a workflow. Default: 300.' }),
  schedule_to_start_seconds: seconds(HOUR_SECONDS)
    .optional()
    .meta({ description: 'Time within which a worker has to take a call. Default: 60.' }),
  heartbeat_seconds: seconds(HOUR_SECONDS)
    .optional()
    .meta({ description: 'Longest time between two heartbeats of an activity. Default: none are expected.' }),
  retry: TemporalRetry.optional().meta({ description: 'Default: a failed activity is not tried again.' }),
  policy: z.enum(['auto', 'requires_approval']).optional(),
}

type Fields = {
  activity?: string | undefined
  workflow?: string | undefined
  timeout_seconds?: number | undefined
  heartbeat_seconds?: number | undefined
  retry?: unknown
}

/** Adds the rules about several fields to the schema of such a tool. */
export const withTemporalRules = <T extends z.ZodType<Fields>>(schema: T): T =>
  schema
    .refine(({ activity, workflow }) => (activity === undefined) !== (workflow === undefined), {
      error: 'one of activity and workflow is required',
      path: ['activity'],
    })
    .refine(({ activity, timeout_seconds = 0 }) => activity === undefined || timeout_seconds <= MAX_ACTIVITY_SECONDS, {
      error: `must be at most ${MAX_ACTIVITY_SECONDS} for an activity; a workflow may take longer`,
      path: ['timeout_seconds'],
    })
    .refine(({ workflow, heartbeat_seconds }) => workflow === undefined || heartbeat_seconds === undefined, {
      error: 'is for an activity; a workflow has no heartbeats',
      path: ['heartbeat_seconds'],
    })
    .refine(({ workflow, retry }) => workflow === undefined || retry === undefined, {
      error: 'is for an activity; a workflow retries its own activities',
      path: ['retry'],
    })
