import type { Clock } from '../domain/schedules/clock.ts'
import type { Attributes } from './search-attributes.ts'
import type { Ask } from './temporal-health.ts'

/** The clock of the schedules, on Temporal Schedules. */
export function createClock(
  _ask: Ask,
  _attributes: Attributes,
  _place: { namespace: string; taskQueue: string },
): Clock {
  const fail = () => Promise.reject(new Error('to be written'))
  return { keep: fail, remove: fail, nextTimes: fail, timesBetween: fail }
}
