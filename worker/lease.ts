import type { NativeConnection } from '@temporalio/worker'
import type { Deps } from '../domain/deps.ts'
import { releaseLease, renewLease } from '../domain/turns/run/process-lease.ts'
import { sleep } from '../lib/sleep.ts'
import { warnRarely } from '../lib/warn-rarely.ts'

const RENEW_MS = 500
const CALL_TIMEOUT_MS = 1000

/**
 * Holds the lease of this process until the signal aborts, for as long as the process reaches Temporal: one that does not
 * cannot end its steps. While it holds it, attempts may begin without an activity. Resolves when the lease has been released.
 */
export async function holdLease(deps: Deps, connection: NativeConnection, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, () => connection.workflowService.getSystemInfo({}))
      if (signal.aborted) break
      await renewLease(deps)
      if (!signal.aborted) deps.attempts.useWorker(true)
    } catch (error) {
      warnRarely(deps.log, { err: (error as Error).message }, 'the lease of this process was not renewed')
    }
    await sleep(RENEW_MS, signal)
  }
  await releaseLease(deps).catch((error: Error) => {
    warnRarely(deps.log, { err: error.message }, 'the lease of this process was not released')
  })
}
