import type { ScheduleId } from '../../contract/kit/ids.ts'
import type { TriggerResponse } from '../../contract/schedules.ts'
import type { Actor } from '../kit/actor.ts'
import { audited } from '../kit/audit/entry.ts'
import { createOnce } from '../kit/create-once.ts'
import { notFound } from '../kit/errors.ts'
import type { CreationAttempt } from '../kit/idempotency-keys.ts'
import { recordRuns } from './clock/record-runs.ts'
import { startSoon } from './clock/start-execution.ts'
import type { Deps } from './deps.ts'

/** Starts an execution now, even of a disabled schedule, or records why it is skipped. Throws `not_found`. */
export async function triggerSchedule(
  deps: Deps,
  actor: Actor,
  scheduleId: ScheduleId,
  attempt: CreationAttempt,
): Promise<TriggerResponse> {
  const { organizationId } = actor
  const { id } = await createOnce(attempt, {
    find: (uuid) => deps.db.scheduleExecution.findFirst({ where: { id: uuid, organizationId }, select: { id: true } }),
    insert: (uuid) => recordManual(deps, actor, scheduleId, uuid),
  })
  return { execution_id: id }
}

async function recordManual(
  deps: Deps,
  actor: Actor,
  scheduleId: ScheduleId,
  executionId: string,
): Promise<{ id: string }> {
  const schedule = await deps.db.schedule.findFirst({
    where: { id: scheduleId, organizationId: actor.organizationId, deletedAt: null },
    select: { id: true, organizationId: true, sessionId: true, targetType: true, targetName: true },
  })
  if (schedule === null) throw notFound('Schedule')
  const told = { action: 'schedule.trigger', target: scheduleId, details: { execution_id: executionId } } as const
  const recorded = await audited(deps, actor, told, async (db) => {
    const runs = await recordRuns({ ...deps, db }, schedule, { ids: [executionId], times: [new Date()] })
    if (runs === 'gone' || runs === 'stale') throw notFound('Schedule')
    return runs
  })
  // Not awaited: the execution can be read at once, and the sweeper repeats a lost start.
  for (const run of recorded.started) void startSoon(deps, schedule, run)
  return { id: executionId }
}
