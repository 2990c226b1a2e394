import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  proxyActivities,
  proxyLocalActivities,
  TimeoutFailure,
} from '@temporalio/workflow'
import type { TurnActivities } from '../worker/activities.ts'
import type { TurnErrorCode, TurnInput, TurnOutcome } from './messages.ts'

/** A single append to the record; it is tried until the record is there again. */
const { failTurn } = proxyLocalActivities<TurnActivities>({
  startToCloseTimeout: '20 seconds',
  retry: { initialInterval: '100 milliseconds', backoffCoefficient: 2, maximumInterval: '10 seconds' },
})

/**
 * A dead worker is noticed by its missing heartbeat. The provider's own failures are counted by the step, which
 * ends them as `llm_error`; what is tried again here beyond that is the service's own trouble.
 */
const { reason } = proxyActivities<TurnActivities>({
  startToCloseTimeout: '30 minutes',
  scheduleToCloseTimeout: '24 hours',
  heartbeatTimeout: '4 seconds',
  retry: {
    initialInterval: '200 milliseconds',
    backoffCoefficient: 2,
    maximumInterval: '15 seconds',
  },
})

/**
 * One turn of a session: the workflow decides, its activities do, and only ids and outcomes pass between them.
 * A plain turn is one activity: the reason step begins the turn, and the one that answers ends it.
 */
export async function turn(input: TurnInput): Promise<TurnOutcome> {
  const iteration = 1
  const summary = `reason · iteration ${iteration}`
  try {
    const { outcome } = await reason.executeWithOptions({ summary }, [input, iteration])
    return outcome === 'answered' ? 'completed' : 'ended'
  } catch (error) {
    // Also when somebody cancels the workflow in Temporal's UI: no turn may stay without an end.
    await CancellationScope.nonCancellable(() => failTurn(input, iteration, errorCode(error)))
    return 'failed'
  }
}

const KNOWN_CODES: TurnErrorCode[] = ['llm_error', 'no_model', 'max_iterations', 'timeout']

function errorCode(error: unknown): TurnErrorCode {
  const cause = error instanceof ActivityFailure ? error.cause : error
  if (cause instanceof TimeoutFailure) return 'timeout'
  const type = cause instanceof ApplicationFailure ? cause.type : undefined
  return KNOWN_CODES.find((code) => code === type) ?? 'internal_error'
}
