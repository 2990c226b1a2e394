import type { ScheduleId } from '../../contract/ids.ts'
import type { Schedule } from '../../contract/schedules.ts'
import type { Actor } from '../actor.ts'
import type { Deps } from '../deps.ts'
import { CLOCK_CHANGE, PAUSED } from './clock-change.ts'
import { getSchedule } from './read.ts'
import { syncClock } from './sync.ts'

/** Disables a schedule. One that is disabled stays as it is. Throws `not_found`. */
export const pauseSchedule = (deps: Deps, actor: Actor, id: ScheduleId): Promise<Schedule> =>
  switchTo(deps, actor, id, { enabled: false, reason: PAUSED })

/** Enables a schedule. What was due while it was disabled is not made up for. Throws `not_found`. */
export const resumeSchedule = (deps: Deps, actor: Actor, id: ScheduleId): Promise<Schedule> =>
  switchTo(deps, actor, id, { enabled: true, reason: null })

async function switchTo(
  deps: Deps,
  actor: Actor,
  id: ScheduleId,
  { enabled, reason }: { enabled: boolean; reason: string | null },
): Promise<Schedule> {
  const changed = await deps.db.$executeRaw`
    UPDATE schedules SET enabled = ${enabled}, disabled_reason = ${reason}, updated_at = now(), ${CLOCK_CHANGE}
    WHERE id = ${id}::uuid AND organization_id = ${actor.organizationId}::uuid AND deleted_at IS NULL
      AND enabled <> ${enabled}`
  if (changed > 0) await syncClock(deps, id)
  return getSchedule(deps, actor, id)
}
