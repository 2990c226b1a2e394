import type { ScheduleId } from '../../contract/kit/ids.ts'
import type { TriggerResponse } from '../../contract/schedules.ts'
import type { Actor } from '../kit/actor.ts'
import { createOnce } from '../kit/create-once.ts'
import { notFound } from '../kit/errors.ts'
import type { CreationAttempt } from '../kit/idempotency-keys.ts'
import { recordRuns } from './clock/record-runs.ts'
import { startSoon } from './clock/start-execution.ts'
import type { Deps } from './deps.ts'

/** Starts an execution now, even of a disabled schedule, or records why it is skipped. Throws `not_found`. */
export async function triggerSchedule(
  deps: Deps,
  { organizationId }: Actor,
  scheduleId: ScheduleId,
  attempt: CreationAttempt,
): Promise<TriggerResponse> {
  const { id } = await createOnce(attempt, {
    find: (uuid) => deps.db.scheduleExecution.findFirst({ where: { id: uuid, organizationId }, select: { id: true } }),
    insert: (uuid) => recordManual(deps, { organizationId, scheduleId }, uuid),
  })
  return { execution_id: id }
}

async function recordManual(
  deps: Deps,
  { organizationId, scheduleId }: { organizationId: string; scheduleId: string },
  executionId: string,
): Promise<{ id: string }> {
  const schedule = await deps.db.schedule.findFirst({
    where: { id: scheduleId, organizationId, deletedAt: null },
    select: { id: true, organizationId: true, sessionId: true, targetType: true, targetName: true },
  })
  const recorded = schedule && (await recordRuns(deps, schedule, { ids: [executionId], times: [new Date()] }))
  if (schedule === null || recorded === 'gone' || recorded === 'stale' || recorded === null) throw notFound('Schedule')
  // Not awaited: the execution can be read at once, and the sweeper repeats a lost start.
  for (const run of recorded.started) void startSoon(deps, schedule, run)
  return { id: executionId }
}
