import { workflowInfo } from '@temporalio/workflow'
import { launch as launchDue } from './activities.ts'
import type { LaunchInput, LaunchOutcome } from './messages.ts'

/** When a Temporal Schedule was to start a workflow. Temporal sets it. */
const SCHEDULED_AT = { name: 'TemporalScheduledStartTime', type: 'DATETIME' } as const

/** Starts the executions of a schedule that are due, as one run of its Temporal Schedule. */
export async function launch(input: LaunchInput): Promise<LaunchOutcome> {
  const { typedSearchAttributes, startTime } = workflowInfo()
  return launchDue(input, (typedSearchAttributes.get(SCHEDULED_AT) ?? startTime).toISOString())
}
