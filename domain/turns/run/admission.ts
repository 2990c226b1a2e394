import { createShares } from '../../../lib/shares.ts'

/** Time for which waiting steps go first, unless `letWait` is called again. */
const WAIT_MS = 3000

/** Creates the places of a process for attempts, and decides which steps may take one now. */
export function createAdmission(places: number) {
  const shares = createShares(places)
  let polls = false
  let canStart = true
  let isClosed = false
  let waiting: { owners: ReadonlySet<string>; untilMs: number } = { owners: new Set(), untilMs: 0 }
  return {
    ...shares,
    /** Takes a place for a new step, unless older steps of the owner wait for one. */
    takeNew: (owner: string) => {
      const goesLater = waiting.owners.has(owner) && performance.now() < waiting.untilMs
      return goesLater ? undefined : shares.take(owner)
    },
    takeWaiting: (owner: string) => (polls && !isClosed ? shares.take(owner) : undefined),
    letWait: (owners: ReadonlySet<string>): void => {
      waiting = { owners, untilMs: performance.now() + WAIT_MS }
    },
    mayBeginEarly: () => polls && canStart && !isClosed,
    setPolling: (now: boolean): void => {
      polls = now
      if (now) isClosed = false
    },
    reportStart: (hasSucceeded: boolean): void => {
      canStart = hasSucceeded
    },
    isClosed: () => isClosed,
    close: (): void => {
      isClosed = true
    },
  }
}
