/** Interval at which the main thread reports that its event loop turns. */
export const BEAT_MS = 250
/** Silence after which the event loop counts as blocked. Two more seconds are left of a step's heartbeat timeout. */
export const STALLED_MS = 750
/** Silence after which the event loop counts as hung for good, so that its activities may move to another process. */
export const HUNG_MS = 60_000

/**
 * Returns a function that says, for each reading of the beat counter, whether the event loop is blocked but not hung.
 */
export function createStallWatch(firstCount: number, firstMs: number): (count: number, nowMs: number) => boolean {
  let seen = { count: firstCount, atMs: firstMs }
  return (count, nowMs) => {
    if (count !== seen.count) seen = { count, atMs: nowMs }
    const silentMs = nowMs - seen.atMs
    return silentMs >= STALLED_MS && silentMs <= HUNG_MS
  }
}
