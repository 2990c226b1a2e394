import type { ScheduleId } from '../../contract/kit/ids.ts'
import type { Schedule } from '../../contract/schedules.ts'
import type { Actor } from '../kit/actor.ts'
import type { Deps } from './deps.ts'
import { patchSchedule } from './update.ts'

/** Disables a schedule. A disabled one keeps its reason. Throws `not_found`. */
export const pauseSchedule = (deps: Deps, actor: Actor, id: ScheduleId): Promise<Schedule> =>
  patchSchedule(deps, actor, id, { enabled: false })

/** Enables a schedule. Runs that came due while it was disabled are not made up for. Throws `not_found`. */
export const resumeSchedule = (deps: Deps, actor: Actor, id: ScheduleId): Promise<Schedule> =>
  patchSchedule(deps, actor, id, { enabled: true })
