import type { Reasoned } from './running-attempt.ts'

/** Time for which the open polls of a vanished machine may still receive activities. */
export const POLLS_MS = 75_000
/** Outcomes after which nothing of the step is left to do. */
const DONE: Reasoned['outcome'][] = ['answered', 'act', 'ended']

/**
 * Turns whose latest attempt at a step here has broken off, for example because Postgres was away. The step may still be
 * claimed by this process, and runs nowhere until an activity comes for it.
 */
export type AbandonedTurns = {
  /** Notes how an attempt at a step of a turn ends. Returns its outcome. */
  watch(turnId: string, outcome: Promise<Reasoned>): Promise<Reasoned>
  /** Turns that were abandoned lately: an open poll of a dead process may hold the activities of their steps. */
  list(): string[]
}

export function createAbandonedTurns(): AbandonedTurns {
  const since = new Map<string, number>()
  return {
    watch: async (turnId, outcome) => {
      try {
        const reasoned = await outcome
        if (DONE.includes(reasoned.outcome)) since.delete(turnId)
        return reasoned
      } catch (error) {
        since.set(turnId, performance.now())
        throw error
      }
    },
    list: () => {
      const now = performance.now()
      for (const [turnId, at] of since) if (now - at > POLLS_MS) since.delete(turnId)
      return [...since.keys()]
    },
  }
}
