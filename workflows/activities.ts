import {
  type ActivityOptions,
  type LocalActivityOptions,
  proxyActivities,
  proxyLocalActivities,
} from '@temporalio/workflow'
import type {
  RetentionActivities,
  ScheduleActivities,
  TurnActivities,
  WebhookActivities,
} from '../worker/activities.ts'

/** Options of activities that change the record once. They are retried until the database is available again. */
const CHANGE: LocalActivityOptions = {
  startToCloseTimeout: '20 seconds',
  retry: { initialInterval: '100 milliseconds', backoffCoefficient: 2, maximumInterval: '10 seconds' },
  // While the database is unavailable they wait on timers: a workflow task kept alive for them would fill the history,
  // and stay in a process that cannot do them.
  localRetryThreshold: '1 second',
}

/**
 * Options of activities that call models, tools and targets. The steps count the failures of these calls; the retries
 * here are for failures of the service.
 */
const CALL: ActivityOptions = {
  startToCloseTimeout: '30 minutes',
  scheduleToCloseTimeout: '24 hours',
  // A process's lease reveals its death within seconds; the heartbeat reveals a task lost on its way.
  heartbeatTimeout: '10 seconds',
  retry: {
    initialInterval: '200 milliseconds',
    backoffCoefficient: 2,
    maximumInterval: '15 seconds',
  },
}

/**
 * Options for beginning a reason step, which fits into one workflow task. The step's activity repeats what fails here.
 */
const BEGIN: LocalActivityOptions = { startToCloseTimeout: '10 seconds', retry: { maximumAttempts: 1 } }

/**
 * Options for continuing a step in the process where it began: soon, and without retries there. A process that has just died
 * still counts as living, and nothing but the timeout gets the activity back from it.
 */
export const RESUME_IN_PROCESS = {
  scheduleToStartTimeout: '1 second',
  // Long, because a process may wait for thousands of models. It notices itself if an activity does not come.
  heartbeatTimeout: '10 minutes',
  retry: { maximumAttempts: 1 },
} satisfies ActivityOptions

export const { begin } = proxyLocalActivities<TurnActivities>(BEGIN)
export const { failTurn, failTool, cancelTurn, requestCalls, settleCalls, endTemporalCall } =
  proxyLocalActivities<TurnActivities>(CHANGE)
export const { reason, runTool, prepareTemporalCall, watchTemporalCall } = proxyActivities<TurnActivities>(CALL)

/** A launch also starts the recorded executions, or asks Temporal for times. */
export const { launch, failExecution, cancelExecution } = proxyLocalActivities<ScheduleActivities>(CHANGE)
export const { execute } = proxyActivities<ScheduleActivities>(CALL)

/** Activity of the retention schedule. The next run continues where it stopped. */
export const { deleteExpired } = proxyActivities<RetentionActivities>({
  summary: 'delete what has expired',
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumAttempts: 5 },
})

/** Activity of a webhook's deliveries. It counts failed attempts itself; the retries here are for failures of the service. */
export const { deliver } = proxyActivities<WebhookActivities>({
  startToCloseTimeout: '1 minute',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '200 milliseconds', backoffCoefficient: 2, maximumInterval: '15 seconds' },
})
