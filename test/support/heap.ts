import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

/** Returns the bytes that are alive in this process, in V8's heap and outside it. */
export function liveBytes(): number {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Pauses before the measurements. Each measurement takes a tenth of a second of CPU time. */
const PAUSES_MS = [50, 100, 100]

/** Returns the lowest of several measurements, to leave out memory that is about to be released. */
export async function leastLiveBytes(): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (const pauseMs of PAUSES_MS) {
    await sleep(pauseMs)
    least = Math.min(least, liveBytes())
  }
  return least
}

export const toMegabytes = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MB`
