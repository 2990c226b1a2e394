import { apiRole } from './api/main.ts'
import { run } from './platform/wiring/run.ts'
import { workerRole } from './worker/main.ts'

// Both roles in one process: a turn then starts eagerly, without a round through Temporal's queue.
if (import.meta.main) await run('service', [workerRole, apiRole])
