import { serveJobs } from '../../../lib/threads/worker.ts'

/** Program of a thread that uses no CPU time, like one on a machine that gives it none. */
const nothing = new Int32Array(new SharedArrayBuffer(4))
serveJobs<number, string>((ms) => [Atomics.wait(nothing, 0, 0, ms)])
