import { type Claim, createSlots, type Slots } from '../../../lib/threads/slots.ts'

/** Lines of those who wait for a database. */
export type Lines = {
  /** Waits until nobody else uses the database. False when that takes too long, or too many wait. */
  enter(id: string, claim: Claim, signal: AbortSignal): Promise<boolean>
  leave(id: string, claim: Claim): void
}

/** Calls that may wait for one database. */
const WAITING = { maxWaiting: 100, maxWaitingOfOwner: 100 }

export function createLines(waitMs: number): Lines {
  const lines = new Map<string, { slots: Slots; users: number }>()
  const forgetUser = (id: string) => {
    const line = lines.get(id)
    if (line !== undefined && --line.users === 0) lines.delete(id)
  }
  return {
    enter: async (id, claim, signal) => {
      const line = lines.get(id) ?? { slots: createSlots(1, waitMs, WAITING), users: 0 }
      lines.set(id, line)
      line.users++
      let hasEntered = false
      try {
        hasEntered = await line.slots.enter(claim, signal)
        return hasEntered
      } finally {
        if (!hasEntered) forgetUser(id)
      }
    },
    leave: (id, claim) => {
      lines.get(id)?.slots.leave(claim)
      forgetUser(id)
    },
  }
}
