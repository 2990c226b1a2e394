import { setImmediate as nextRound } from 'node:timers/promises'
import { createFairQueue } from '../../lib/fair-queue.ts'

/** One request's turn to work on its large body. */
export type ParseTurn = {
  /** Waits before the next step of the work: first for the turn, then for everything else that the event loop has to do. */
  step(): Promise<void>
  end(): void
}
export type ParseQueue = (owner: string | undefined) => ParseTurn

const UNLIMITED = { maxWaiting: Number.POSITIVE_INFINITY, maxWaitingOfOwner: Number.POSITIVE_INFINITY }

/**
 * Works on one large body at a time, in steps, so that everything else gets its time in between. Owners take turns, so
 * an owner of many bodies waits for their own only. The memory for bodies bounds the queue.
 */
export function createParseQueue(): ParseQueue {
  const queue = createFairQueue(1, Number.POSITIVE_INFINITY, UNLIMITED)
  return (owner) => {
    let entered: Promise<unknown> | undefined
    return {
      async step() {
        entered ??= queue.enter({ owner })
        await entered
        await nextRound()
      },
      end() {
        void entered?.then(() => setImmediate(() => queue.leave({ owner })))
        entered = undefined
      },
    }
  }
}
