import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** In bytes, of this process. `live`: what is reachable, in JavaScript and in buffers; `resident`: what the machine gives it. */
export type Memory = { live: number; resident: number }

/** Collects garbage first, so that two readings differ by what is kept. */
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
