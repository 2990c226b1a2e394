import { ApplicationFailure } from '@temporalio/activity'
import { createShares } from '../lib/shares.ts'

/** Numbers of tool calls and executions that a process runs at once. One owner gets at most four fifths of each. */
const TOOL_PLACES = 1000
const EXECUTION_PLACES = 250
/** Number of deliveries that a process makes at once, and of them to one webhook. */
const DELIVERY_PLACES = 200
const WEBHOOK_PLACES = 16
/** Number of calls at workers of organizations whose progress a process watches at once. */
const WATCH_PLACES = 200
export const CALL_PLACES = TOOL_PLACES + EXECUTION_PLACES + DELIVERY_PLACES + WATCH_PLACES

/** Interval at which the calls of one owner that were turned away come again, one after the other. */
const RETRY_SPACING_MS = 20
/** Minimum time until such a call comes again. */
const MIN_RETRY_MS = 1000

/**
 * Places for the calls of one kind, at most `mostOfOwner` for an owner. A call whose owner has no place is given back to Temporal, and comes again after the
 * calls that were turned away before it: so waiting takes no slot of a worker, and little of Temporal.
 */
export function createCalls(places: number, mostOfOwner = places) {
  const shares = createShares(places)
  /** When the last call of an owner that was turned away comes again. */
  const lastAt = new Map<string, number>()
  return {
    async run<T>(owner: string, work: () => Promise<T>): Promise<T> {
      const leave = shares.heldBy(owner) < mostOfOwner ? shares.take(owner) : undefined
      if (leave === undefined) throw later(owner)
      return work().finally(leave)
    },
  }

  function later(owner: string): ApplicationFailure {
    const now = Math.ceil(performance.now())
    for (const [other, at] of lastAt) if (at < now) lastAt.delete(other)
    const at = Math.max(now + MIN_RETRY_MS, (lastAt.get(owner) ?? 0) + RETRY_SPACING_MS)
    lastAt.set(owner, at)
    return waitsForPlace(at - now)
  }
}

/** Returns the failure with which an activity comes again, because its owner has many that run. */
export const waitsForPlace = (afterMs: number): ApplicationFailure =>
  ApplicationFailure.create({
    message: 'many calls of the same owner run; this one comes again',
    type: 'waits_for_place',
    nextRetryDelay: afterMs,
  })

export const createAllCalls = () => ({
  tools: createCalls(TOOL_PLACES),
  executions: createCalls(EXECUTION_PLACES),
  watches: createCalls(WATCH_PLACES),
  deliveries: createCalls(DELIVERY_PLACES, WEBHOOK_PLACES),
})
