import { setImmediate, setTimeout as sleep } from 'node:timers/promises'

/** Number of iterations that are timed, and the time in ms that they take at most in a process with room. */
const ITERATIONS = 3
const FREE_MS = 6
const PAUSE_MS = 40

let timing: Promise<boolean> | undefined

/** Resolves when the event loop has room for less urgent work, or after `maxMs`. At once in a process that does little. */
export async function whenLoopIsFree(maxMs: number): Promise<void> {
  const until = performance.now() + maxMs
  while (!(await isFree()) && performance.now() < until) await sleep(PAUSE_MS)
}

/** Times some iterations of the loop, once for all who ask meanwhile. */
function isFree(): Promise<boolean> {
  timing ??= timeIterations().finally(() => {
    timing = undefined
  })
  return timing
}

async function timeIterations(): Promise<boolean> {
  const startedAt = performance.now()
  for (let iteration = 0; iteration < ITERATIONS; iteration++) await setImmediate()
  return performance.now() - startedAt < FREE_MS
}
