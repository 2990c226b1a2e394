import { Worker } from 'node:worker_threads'
import { MAX_INPUT_BYTES } from './mutate.ts'
import type { Failure, Tally } from './run.ts'
import type { FuzzJob } from './worker.ts'

/**
 * Time after which an input counts as hanging, and is seen after at most twice that, before the test's own limit. The
 * slowest of them takes two seconds on a busy machine.
 */
const HANGS_AFTER_MS = 20_000
const MEMORY_MB = 1024

export type Fuzzed = (Tally & { ran: number }) | { failure: Failure }

/**
 * Thread in which parsers run, so that an endless loop, too much memory or an unhandled rejection is found with the
 * input that caused it.
 */
export function createFuzzThread() {
  const shared = new SharedArrayBuffer(8 + MAX_INPUT_BYTES)
  const [progress, bytes] = [new Int32Array(shared, 0, 2), new Uint8Array(shared, 8)]
  let worker: Worker | undefined
  const start = () =>
    new Worker(new URL('./worker.ts', import.meta.url), {
      workerData: { input: shared },
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
      execArgv: ['--disable-warning=ExperimentalWarning'],
    })
  const current = () => Buffer.from(bytes.slice(0, Math.min(progress[1] ?? 0, bytes.length))).toString('base64')
  const failed = (problem: string): Fuzzed => ({ failure: { problem, input: current() } })
  return {
    async run(job: FuzzJob): Promise<Fuzzed> {
      worker ??= start()
      const { promise, resolve } = Promise.withResolvers<Fuzzed>()
      progress.fill(0)
      let last = 0
      const watch = setInterval(() => {
        if (progress[0] === last && last > 0) resolve(failed(`did not end within ${HANGS_AFTER_MS / 1000} s`))
        last = progress[0] ?? 0
      }, HANGS_AFTER_MS)
      const onError = (error: Error) => resolve(failed(`ended the thread: ${error.stack ?? error.message}`))
      const onMessage = (result: Tally | { failure: Failure }) =>
        resolve('failure' in result ? result : { ...result, ran: progress[0] ?? 0 })
      worker.once('error', onError).once('message', onMessage)
      worker.postMessage(job)
      const fuzzed = await promise
      clearInterval(watch)
      worker.off('error', onError).off('message', onMessage)
      if ('failure' in fuzzed) await this.close()
      return fuzzed
    },
    async close(): Promise<void> {
      await worker?.terminate()
      worker = undefined
    },
  }
}
