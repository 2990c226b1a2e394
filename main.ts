import { apiRole } from './api/main.ts'
import { run } from './platform/wiring/run.ts'
import { workerRole } from './worker/main.ts'

// Runs both roles in one process, so that turns start eagerly, without a detour through Temporal's queue.
if (import.meta.main) await run('service', [workerRole, apiRole])
