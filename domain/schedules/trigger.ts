import type { ScheduleId } from '../../contract/ids.ts'
import type { TriggerResponse } from '../../contract/schedules.ts'
import type { Actor } from '../actor.ts'
import type { Deps } from '../deps.ts'
import type { CreationAttempt } from '../idempotency-keys.ts'

/** Starts an execution now, of a disabled schedule too, or records why it is skipped. Throws `not_found`. */
export async function triggerSchedule(
  _deps: Deps,
  _actor: Actor,
  _id: ScheduleId,
  _attempt: CreationAttempt,
): Promise<TriggerResponse> {
  throw new Error('to be written')
}
