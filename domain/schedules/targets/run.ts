import type { Deps } from '../deps.ts'
import type { BegunExecution } from './begun-execution.ts'
import { sendRequest } from './http-request.ts'
import type { TargetResult } from './result.ts'
import { postMessage } from './session-message.ts'

/** Runs the target of an execution. Rejects if the service itself fails; then the target is run again. */
export async function runTarget(deps: Deps, execution: BegunExecution, signal: AbortSignal): Promise<TargetResult> {
  switch (execution.schedule.targetName) {
    case 'session_message':
    case 'agent_turn':
      return postMessage(deps, execution, signal)
    case 'http_request':
      return sendRequest(deps, execution, signal)
    case 'noop':
      return { outcome: 'completed' }
    default:
      return { outcome: 'failed', error: 'There is no such target in this release.', isTemporary: false }
  }
}
