import { z } from 'zod'
import { DateTime, jsonUpTo, milliseconds, nameUpTo, textUpTo } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { ExecutionId, ScheduleId, wireId, wireUuid } from './kit/ids.ts'
import { choice, pagination } from './kit/query.ts'

const MAX_NAME_BYTES = 2 * 1024
const MAX_DESCRIPTION_BYTES = 10 * 1024
const MAX_CRON_BYTES = 1024
const MAX_TIMEZONE_BYTES = 64
const MAX_INPUT_BYTES = 1024 * 1024 + 64 * 1024
const MAX_INT32 = 2 ** 31 - 1
const HOUR_MS = 3_600_000

/** Maximum number of next times in an answer: Temporal returns no more at once. */
const MAX_NEXT_TRIGGERS = 10

const count = z.int().min(0).max(MAX_INT32)
const manyRuns = z.int().min(0).meta({ format: 'int64' })

const ScheduleTarget = z
  .object({
    type: z.string().meta({ description: 'workflow or activity' }),
    name: z.string().meta({ description: 'workflow: session_message or agent_turn; activity: http_request or noop' }),
    input: jsonUpTo(z.unknown(), MAX_INPUT_BYTES).optional(),
  })
  .meta({
    id: 'ScheduleTarget',
    description:
      'Action of the schedule. session_message (or its alias agent_turn) posts a message: {session_id, message}, or {agent_id, message} for a new session each time. http_request sends a request: {url, method, headers, body}. noop does nothing.',
  })
export type ScheduleTarget = z.infer<typeof ScheduleTarget>

const ScheduleTargetResponse = z
  .object({ type: z.string(), name: z.string(), input: z.unknown() })
  .meta({ id: 'ScheduleTargetResponse', description: 'The value of each header is "***".' })

/** When a failed run is retried. */
export const RetryPolicy = z
  .strictObject({
    max_attempts: z.int().min(1).max(100).optional().meta({ description: 'Attempts including the first.' }),
    initial_interval_ms: z.int().min(1).max(HOUR_MS).optional(),
    max_interval_ms: z
      .int()
      .min(1)
      .max(24 * HOUR_MS)
      .optional(),
    backoff_coefficient: z.number().min(1).max(10).optional(),
  })
  .meta({ id: 'RetryPolicy' })
export type RetryPolicy = z.infer<typeof RetryPolicy>

export const Schedule = z
  .object({
    id: wireUuid,
    name: z.string(),
    description: z.string().nullish(),
    cron_expression: z.string(),
    timezone: z.string(),
    enabled: z.boolean(),
    disabled_reason: z
      .string()
      .nullish()
      .meta({ description: 'Why the schedule is disabled. Null while it is enabled.' }),
    catch_up_missed: z.boolean(),
    max_catch_up: count.nullish(),
    max_concurrent: count.nullish(),
    retry_policy: RetryPolicy.nullish(),
    target: ScheduleTargetResponse,
    last_triggered_at: DateTime.nullish(),
    next_trigger_at: DateTime.nullish().meta({
      description: 'Next time from Temporal. Null while disabled, and until Temporal has computed it.',
    }),
    next_triggers: z
      .array(DateTime)
      .max(MAX_NEXT_TRIGGERS)
      .meta({ description: `Up to ${MAX_NEXT_TRIGGERS} next times. The first equals next_trigger_at.` }),
    created_at: DateTime,
    updated_at: DateTime,
  })
  .meta({ id: 'ScheduleResponse' })
export type Schedule = z.infer<typeof Schedule>

export const ExecutionStatus = z.enum(['pending', 'running', 'completed', 'failed', 'skipped'])
export type ExecutionStatus = z.infer<typeof ExecutionStatus>

export const ScheduleExecution = z
  .object({
    id: wireUuid,
    schedule_id: wireUuid,
    scheduled_at: DateTime,
    started_at: DateTime.meta({
      description: 'For a pending or skipped execution, the time at which it was recorded.',
    }),
    created_at: DateTime,
    completed_at: DateTime.nullish(),
    duration_ms: z.int().min(0).nullish(),
    status: ExecutionStatus,
    error: z.string().nullish(),
    task_id: wireUuid.nullish().meta({ description: 'Always null.' }),
    workflow_id: wireUuid
      .nullish()
      .meta({ description: 'Id of its workflow in Temporal. Null for a skipped execution.' }),
    turn_id: wireId('turn').nullish().meta({ description: 'The turn that it posted, unless its session is deleted.' }),
    session_id: wireId('session').nullish().meta({ description: 'The session of that turn.' }),
    http_status: z.int().nullish().meta({ description: 'Status of the latest answer to an http_request.' }),
    answer: z
      .string()
      .nullish()
      .meta({ description: 'The first 2 KB of that answer. Values of sent headers are replaced by [hidden].' }),
  })
  .meta({ id: 'ScheduleExecutionResponse' })
export type ScheduleExecution = z.infer<typeof ScheduleExecution>

export const ScheduleStats = z
  .object({
    total_executions: manyRuns,
    successful_executions: manyRuns,
    failed_executions: manyRuns,
    skipped_executions: manyRuns,
    avg_duration_ms: milliseconds.nullish().meta({ description: 'Average over completed and failed executions.' }),
    last_execution_status: ExecutionStatus.nullish(),
  })
  .meta({ id: 'ScheduleStatsResponse', description: 'Counts the executions that retention has kept.' })
export type ScheduleStats = z.infer<typeof ScheduleStats>

const cronExpression = textUpTo(MAX_CRON_BYTES).meta({
  description:
    'minute hour day-of-month month day-of-week; six fields begin with the second; seven also end with the year. With both day fields given, either matches.',
})
const timezone = textUpTo(MAX_TIMEZONE_BYTES).meta({ description: 'IANA time zone.' })
const description = textUpTo(MAX_DESCRIPTION_BYTES)
const name = nameUpTo(MAX_NAME_BYTES).pipe(textUpTo(MAX_NAME_BYTES))

const CreateScheduleRequest = z
  .object({
    name,
    description: description.nullish(),
    cron_expression: cronExpression,
    timezone: timezone.optional().meta({ default: 'UTC' }),
    enabled: z.boolean().optional().meta({ default: true }),
    catch_up_missed: z.boolean().optional().meta({
      default: false,
      description: 'Runs missed while the service was down are made up for. Otherwise they are dropped.',
    }),
    max_catch_up: count
      .nullish()
      .meta({ description: 'Maximum number of runs to make up for at once, newest first. 0 or null: 100.' }),
    max_concurrent: count
      .nullish()
      .meta({ description: 'Maximum number of executions at once; others are skipped. 0 or null: no limit.' }),
    retry_policy: RetryPolicy.nullish().meta({ description: '{} or null: no retries.' }),
    target: ScheduleTarget,
  })
  .meta({ id: 'CreateScheduleRequest' })
export type CreateScheduleRequest = z.infer<typeof CreateScheduleRequest>

const UpdateScheduleRequest = z
  .object({
    name: name.nullish(),
    description: description.nullish(),
    cron_expression: cronExpression.nullish(),
    timezone: timezone.nullish(),
    enabled: z.boolean().nullish(),
    catch_up_missed: z.boolean().nullish(),
    max_catch_up: count.nullish(),
    max_concurrent: count.nullish(),
    retry_policy: RetryPolicy.nullish(),
    target: ScheduleTarget.nullish().meta({ description: 'A header value of *** keeps the stored one.' }),
  })
  .meta({
    id: 'UpdateScheduleRequest',
    description: 'Fields that are null or absent stay unchanged. 0 removes a limit, {} the retry policy.',
  })
export type UpdateScheduleRequest = z.infer<typeof UpdateScheduleRequest>

const TriggerResponse = z.object({ execution_id: wireUuid }).meta({ id: 'TriggerResponse' })
export type TriggerResponse = z.infer<typeof TriggerResponse>

const SchedulePage = z.object({ data: z.array(Schedule), total: manyRuns }).meta({ id: 'SchedulesListResponse' })
const ExecutionPage = z
  .object({ data: z.array(ScheduleExecution), total: manyRuns })
  .meta({ id: 'ScheduleExecutionsListResponse' })

const params = z.object({ schedule_id: ScheduleId })

export const scheduleEndpoints = group(
  { tag: 'durable', path: '/v1/durable/schedules', access: 'admin' },
  {
    list: {
      operationId: 'listSchedules',
      method: 'GET',
      access: 'member',
      summary: 'Lists the schedules, newest first',
      query: z.object({ enabled: choice, target_type: z.string().optional(), ...pagination }),
      responses: { 200: SchedulePage },
    },
    create: {
      operationId: 'createSchedule',
      method: 'POST',
      summary: 'Creates a schedule',
      body: CreateScheduleRequest,
      creates: true,
      responses: { 201: Schedule },
      errors: [422],
    },
    get: {
      operationId: 'getSchedule',
      method: 'GET',
      at: '/{schedule_id}',
      access: 'member',
      summary: 'Gets a schedule',
      params,
      responses: { 200: Schedule },
    },
    patch: {
      operationId: 'updateSchedule',
      method: 'PATCH',
      at: '/{schedule_id}',
      summary: 'Changes a schedule; its next time is computed at once',
      params,
      body: UpdateScheduleRequest,
      responses: { 200: Schedule },
      errors: [409, 422],
    },
    delete: {
      operationId: 'deleteSchedule',
      method: 'DELETE',
      at: '/{schedule_id}',
      summary: 'Deletes a schedule; running executions continue',
      params,
      responses: { 204: null },
    },
    pause: {
      operationId: 'pauseSchedule',
      method: 'POST',
      at: '/{schedule_id}/pause',
      summary: 'Disables a schedule',
      params,
      responses: { 200: Schedule },
    },
    resume: {
      operationId: 'resumeSchedule',
      method: 'POST',
      at: '/{schedule_id}/resume',
      summary: 'Enables a schedule again; runs that were due meanwhile are not made up for',
      params,
      responses: { 200: Schedule },
    },
    trigger: {
      operationId: 'triggerSchedule',
      method: 'POST',
      at: '/{schedule_id}/trigger',
      summary: 'Starts an execution now, even if the schedule is disabled',
      params,
      creates: true,
      responses: { 200: TriggerResponse },
    },
    stats: {
      operationId: 'getScheduleStats',
      method: 'GET',
      at: '/{schedule_id}/stats',
      access: 'member',
      summary: 'Counts the executions',
      params,
      responses: { 200: ScheduleStats },
    },
    executions: {
      operationId: 'listExecutions',
      method: 'GET',
      at: '/{schedule_id}/executions',
      access: 'member',
      summary: 'Lists the executions, newest first',
      params,
      query: z.object({ status: ExecutionStatus.optional(), ...pagination }),
      responses: { 200: ExecutionPage },
    },
  },
)

export const executionEndpoints = group(
  { tag: 'durable', path: '/v1/durable/executions', access: 'member' },
  {
    get: {
      operationId: 'getExecution',
      method: 'GET',
      at: '/{execution_id}',
      summary: 'Gets an execution',
      params: z.object({ execution_id: ExecutionId }),
      responses: { 200: ScheduleExecution },
    },
  },
)
