/** A worker process that has the lab's tools besides the service's own. */
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

// For the processes that are started next: to compile takes half of a start, and one that is killed leaves nothing behind.
flushCompileCache()
