import {
  type ActivityOptions,
  type LocalActivityOptions,
  proxyActivities,
  proxyLocalActivities,
} from '@temporalio/workflow'
import type { RetentionActivities, ScheduleActivities, TurnActivities } from '../worker/activities.ts'

/** Options of activities that make a single change of the record. They are retried until the database is available again. */
const CHANGE: LocalActivityOptions = {
  startToCloseTimeout: '20 seconds',
  retry: { initialInterval: '100 milliseconds', backoffCoefficient: 2, maximumInterval: '10 seconds' },
  // While the database is unavailable they wait on timers: a workflow task kept alive for them would fill the history.
  localRetryThreshold: '2 seconds',
}

/**
 * Options of activities that call models, tools and targets. The steps count
 * the failures of what they call themselves; the other retries here are for failures of the service.
 */
const CALL: ActivityOptions = {
  startToCloseTimeout: '30 minutes',
  scheduleToCloseTimeout: '24 hours',
  // The lease of its process tells of a death within seconds; this, of a task that was lost on its way.
  heartbeatTimeout: '10 seconds',
  retry: {
    initialInterval: '200 milliseconds',
    backoffCoefficient: 2,
    maximumInterval: '15 seconds',
  },
}

/** Beginning of a reason step. Its activity makes up for whatever fails here. It fits into one workflow task. */
const BEGIN: LocalActivityOptions = { startToCloseTimeout: '10 seconds', retry: { maximumAttempts: 1 } }

/** How a step that has begun in a process goes on there: soon, and what fails there goes on like any other. */
export const RESUME_IN_PROCESS = {
  scheduleToStartTimeout: '2 seconds',
  // A process may wait for thousands of models. It notices itself when an activity has not come.
  heartbeatTimeout: '10 minutes',
  retry: { maximumAttempts: 1 },
} satisfies ActivityOptions

export const { begin } = proxyLocalActivities<TurnActivities>(BEGIN)
export const { failTurn, failTool, cancelTurn, requestCalls, settleCalls } =
  proxyLocalActivities<TurnActivities>(CHANGE)
export const { reason, runTool } = proxyActivities<TurnActivities>(CALL)

/** A launch also starts what it has recorded, or asks Temporal for times. */
export const { launch, failExecution, cancelExecution } = proxyLocalActivities<ScheduleActivities>(CHANGE)
export const { execute } = proxyActivities<ScheduleActivities>(CALL)

/** Activity of the retention schedule. The next run continues where one stopped. */
export const { deleteExpired } = proxyActivities<RetentionActivities>({
  summary: 'delete what has expired',
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumAttempts: 5 },
})
