import { ApplicationFailure, CancellationScope, isCancellation, setCurrentDetails, sleep } from '@temporalio/workflow'
import { cancelExecution, execute, failExecution } from './activities.ts'
import type { ExecutionInput } from './messages.ts'
import { createResumeSignal } from './resume-signal.ts'

/** Time after which a workflow that waits for a turn reads the record without having been notified. */
const RECHECK_MS = 24 * 60 * 60_000

/**
 * Runs one execution of a schedule. Its activity runs the target and records the end. An execution that has posted a
 * message ends with the turn, however long the turn waits for its client. A failed execution fails its workflow.
 */
export async function execution(input: ExecutionInput): Promise<'completed'> {
  const outcome = await runToEnd(input)
  if (outcome === 'completed') return outcome
  throw ApplicationFailure.nonRetryable('the execution failed; its record says why', 'execution_failed')
}

async function runToEnd(input: ExecutionInput): Promise<'completed' | 'failed'> {
  try {
    return await attempt(input)
  } catch (error) {
    if (isCancellation(error)) {
      await CancellationScope.nonCancellable(() => cancelExecution(input))
      throw error
    }
    await CancellationScope.nonCancellable(() => failExecution(input))
    return 'failed'
  }
}

async function attempt(input: ExecutionInput): Promise<'completed' | 'failed'> {
  const turnEnds = createResumeSignal()
  for (;;) {
    const ran = await execute(input)
    if (ran.outcome === 'waits') {
      setCurrentDetails('waits for the end of its turn')
      await turnEnds.next(RECHECK_MS)
    } else if (ran.outcome === 'retry') {
      const at = new Date(Date.now() + ran.afterMs).toISOString()
      setCurrentDetails(`attempt ${ran.failures} failed; the target is run again at ${at}`)
      await sleep(ran.afterMs)
    } else return ran.outcome
  }
}
