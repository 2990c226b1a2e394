/** Worker process with the lab's tools in addition to the service's own. */
import { flushCompileCache } from 'node:module'
import { run } from '../../platform/wiring/run.ts'
import { workerRole } from '../../worker/main.ts'
import { createLab } from './lab.ts'

const { capability } = createLab()

await run('worker', [
  (platform, config, log) => {
    platform.deps.capabilities = [...platform.deps.capabilities, capability]
    return workerRole(platform, config, log)
  },
])

// Flush now for the processes started next. Compiling takes half of a start, and a killed process does not write its
// cache.
flushCompileCache()
