import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow'
import type { RetentionActivities, TurnActivities } from '../worker/activities.ts'

/** Activities that make a single append to the record. They are retried until the database is available again. */
export const { failTurn, failTool, cancelTurn, requestCalls, settleCalls } = proxyLocalActivities<TurnActivities>({
  startToCloseTimeout: '20 seconds',
  retry: { initialInterval: '100 milliseconds', backoffCoefficient: 2, maximumInterval: '10 seconds' },
  // While the database is unavailable they wait on timers: a workflow task kept alive for them would fill the history.
  localRetryThreshold: '2 seconds',
})

/**
 * Activities that call models and tools. A missing heartbeat reveals a dead worker. The steps count the failures of
 * providers and tools themselves; the other retries here are for failures of the service.
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

/** Activity of the retention schedule. The next run continues where one stopped. */
export const { deleteExpired } = proxyActivities<RetentionActivities>({
  summary: 'delete what has expired',
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumAttempts: 5 },
})
