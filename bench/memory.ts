import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Memory of this process in bytes. `live` is reachable, in JavaScript and in buffers; `resident` is what the system has
 * assigned.
 */
export type Memory = { live: number; resident: number }

/** Measures memory after collecting garbage, so that two readings differ by what is kept. */
export async function measureMemory(): Promise<Memory> {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  for (let round = 0; round < 3; round++) {
    collect()
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const { heapUsed, external, rss } = process.memoryUsage()
  return { live: heapUsed + external, resident: rss }
}
