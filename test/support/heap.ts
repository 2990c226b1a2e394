import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

/** Bytes that are alive in this process, in V8's heap and outside of it. */
export function liveBytes(): number {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** The least of several looks: what is only just dying has gone by then. */
export async function leastLiveBytes(): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let look = 0; look < 5; look++) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    least = Math.min(least, liveBytes())
  }
  return least
}

export const toMegabytes = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MB`
