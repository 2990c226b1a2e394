import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow'
import type { RetentionActivities, TurnActivities } from '../worker/activities.ts'

/** Single appends to the record; they are tried until the record is there again. */
export const { failTurn, failTool, cancelTurn, requestCalls, settleCalls } = proxyLocalActivities<TurnActivities>({
  startToCloseTimeout: '20 seconds',
  retry: { initialInterval: '100 milliseconds', backoffCoefficient: 2, maximumInterval: '10 seconds' },
  // While the record is away they wait on timers: a workflow task that is kept alive for them fills the history.
  localRetryThreshold: '2 seconds',
})

/**
 * A dead worker is noticed by its missing heartbeat. The provider's and the tools' own failures are counted by the
 * steps; what is tried again here beyond that is the service's own trouble.
 */
export const { reason, runTool } = proxyActivities<TurnActivities>({
  startToCloseTimeout: '30 minutes',
  scheduleToCloseTimeout: '24 hours',
  heartbeatTimeout: '4 seconds',
  retry: {
    initialInterval: '200 milliseconds',
    backoffCoefficient: 2,
    maximumInterval: '15 seconds',
  },
})

/** What a run does not come to is the next one's. */
export const { deleteExpired } = proxyActivities<RetentionActivities>({
  summary: 'delete what has expired',
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumAttempts: 5 },
})
