import type { RetryPolicy, Schedule, ScheduleExecution } from '../../contract/schedules.ts'
import type { ScheduleExecution as ExecutionRow, Schedule as ScheduleRow } from '../../prisma/generated/client.ts'
import { toId } from '../kit/ids.ts'

export const presentSchedule = (row: ScheduleRow, nextTimes: Date[]): Schedule => ({
  id: row.id,
  name: row.name,
  description: row.description,
  cron_expression: row.cronExpression,
  timezone: row.timezone,
  enabled: row.enabled,
  disabled_reason: row.disabledReason,
  catch_up_missed: row.catchUpMissed,
  max_catch_up: row.maxCatchUp,
  max_concurrent: row.maxConcurrent,
  // Validated by the contract when it was written.
  retry_policy: row.retryPolicy as RetryPolicy | null,
  target: { type: row.targetType, name: row.targetName, input: row.targetInput },
  last_triggered_at: row.lastTriggeredAt?.toISOString() ?? null,
  next_trigger_at: nextTimes[0]?.toISOString() ?? null,
  next_triggers: nextTimes.map((time) => time.toISOString()),
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})

/** Presents an execution. `sessionId` is the session of its turn. */
export const presentExecution = (row: ExecutionRow, sessionId: string | undefined): ScheduleExecution => ({
  id: row.id,
  schedule_id: row.scheduleId,
  scheduled_at: row.scheduledAt.toISOString(),
  started_at: (row.startedAt ?? row.createdAt).toISOString(),
  created_at: row.createdAt.toISOString(),
  completed_at: row.completedAt?.toISOString() ?? null,
  duration_ms: durationOf(row),
  status: row.status,
  error: row.error,
  task_id: null,
  workflow_id: row.status === 'skipped' ? null : row.id,
  turn_id: sessionId === undefined ? null : toId('turn', row.id),
  session_id: sessionId === undefined ? null : toId('session', sessionId),
  http_status: row.httpStatus,
  answer: row.answer,
})

/** Maximum of the contract: 24 days. */
const MAX_INT32 = 2 ** 31 - 1

const durationOf = ({ startedAt, completedAt }: ExecutionRow): number | null =>
  startedAt === null || completedAt === null
    ? null
    : Math.min(MAX_INT32, Math.max(0, completedAt.getTime() - startedAt.getTime()))
