/** Worker process with the lab's tools in addition to the service's own. */
import { flushCompileCache } from 'node:module'
import { run } from '../../platform/wiring/run.ts'
import { workerRole } from '../../worker/main.ts'
import { createLab } from './lab.ts'

const { capability } = createLab()

await run('worker', [
  async (platform, config, log) => {
    platform.deps.capabilities = [...platform.deps.capabilities, capability]
    const running = await workerRole(platform, config, log)
    // Now, for the processes started next: a killed process does not write its cache.
    flushCompileCache()
    return running
  },
])
