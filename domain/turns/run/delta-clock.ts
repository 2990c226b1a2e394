/** Decides when streamed text is written, for all answers of a process. */
export type DeltaClock = {
  /**
   * Calls `flush` once, when text has waited long enough: 100 ms, and up to 500 ms while the process is behind. Texts
   * that are due at about the same time are flushed together, so that they can share a statement. Returns a function
   * that cancels the call.
   */
  schedule(flush: () => Promise<void> | undefined): () => void
}

const TICK_MS = 25
const MIN_WAIT_MS = 100
const MAX_WAIT_MS = 500
/** Time from a tick's due time to the end of its writes that a process with room takes. */
const EASY_MS = 25
/** Time that text waits longer, for each ms that ticks take beyond that. */
const WAIT_PER_MS = 4
/** Longest time of a tick that counts, so that a long interruption is soon forgotten. */
const LONGEST_MS = 150
/** Weight of the latest tick in the mean of the time that ticks take. */
const LATEST = 0.2

/** The time in ms, and what calls after some of it. */
export type Time = { now(): number; after(ms: number, call: () => void): void }

const REAL_TIME: Time = { now: () => performance.now(), after: (ms, call) => void setTimeout(call, ms) }

/** Creates a clock. It only runs while something waits. */
export function createDeltaClock(time = REAL_TIME): DeltaClock {
  // In the order of scheduling, which nearly is the order of their due times.
  const waiting = new Map<() => Promise<void> | undefined, number>()
  let takenMs = 0
  let isPlanned = false

  const waitMs = () => Math.min(MAX_WAIT_MS, MIN_WAIT_MS + WAIT_PER_MS * Math.max(0, takenMs - EASY_MS))
  const runTick = async (dueAt: number) => {
    isPlanned = false
    const now = time.now()
    const writes: (Promise<void> | undefined)[] = []
    for (const [flush, at] of waiting) {
      if (at > now) break
      waiting.delete(flush)
      writes.push(flush())
    }
    if (waiting.size > 0) planTick()
    if (writes.length === 0) return
    await Promise.allSettled(writes)
    takenMs += (Math.min(time.now() - dueAt, LONGEST_MS) - takenMs) * LATEST
  }
  const planTick = () => {
    isPlanned = true
    const dueAt = time.now() + TICK_MS
    time.after(TICK_MS, () => void runTick(dueAt))
  }
  return {
    schedule: (flush) => {
      // Half a tick early, so that what has waited for four ticks is not left to the fifth.
      waiting.set(flush, time.now() + waitMs() - TICK_MS / 2)
      if (!isPlanned) planTick()
      return () => void waiting.delete(flush)
    },
  }
}
