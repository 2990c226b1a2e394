import {
  ScheduleAlreadyRunning,
  type ScheduleClient,
  type ScheduleDescription,
  type ScheduleOptions,
  type ScheduleOptionsStartWorkflowAction,
  ScheduleOverlapPolicy,
} from '@temporalio/client'
import type { Workflow } from '@temporalio/common'
import type { Logger } from 'pino'
import type { Retention } from '../../domain/deps.ts'
import { sleep } from '../../lib/sleep.ts'
import { RETENTION_WORKFLOW } from '../../workflows/messages.ts'

/** Dependencies of keepRetentionSchedule. `ask` has a time limit. */
export type ScheduleKeeping = {
  ask: (work: (client: ScheduleClient) => Promise<void>) => Promise<void>
  taskQueue: string
  log: Logger
  signal: AbortSignal
}

type Schedule = ScheduleOptions<ScheduleOptionsStartWorkflowAction<Workflow>>

const MIN_SECS = 1
const MAX_SECS = 300
/** Catch-up window, the shortest that Temporal accepts. A missed run is made up for by the next one. */
const CATCHUP_MS = 10_000
const RETRY_PAUSE_MS = 5000
/** Longest time for which the schedule may be missing, where Temporal has lost it. */
const MAX_MISSING_SECS = 60

/**
 * Creates or updates the retention schedule in Temporal, again and again until the signal aborts, as Temporal may lose
 * it; several processes may do so at once. Never rejects.
 */
export async function keepRetentionSchedule(
  { ask, taskQueue, log, signal }: ScheduleKeeping,
  retention: Pick<Retention, 'deltasMs'>,
): Promise<void> {
  const everySecs = intervalOf(retention)
  const schedule = retentionSchedule(taskQueue, everySecs)
  let isKept = true
  while (!signal.aborted) {
    try {
      await ask((client) => keepSchedule(client, schedule))
      isKept = true
    } catch (error) {
      if (isKept) log.warn({ err: (error as Error).message }, 'retention may not be scheduled; retrying')
      isKept = false
    }
    await sleep(isKept ? Math.min(everySecs, MAX_MISSING_SECS) * 1000 : RETRY_PAUSE_MS, signal)
  }
}

/** Returns the seconds between two runs: as few as the retention period requires, within MIN_SECS and MAX_SECS. */
const intervalOf = ({ deltasMs }: Pick<Retention, 'deltasMs'>): number =>
  Math.min(MAX_SECS, Math.max(MIN_SECS, Math.ceil(deltasMs / 1000)))

function retentionSchedule(taskQueue: string, everySecs: number): Schedule {
  const id = `${taskQueue}-retention`
  return {
    scheduleId: id,
    spec: { intervals: [{ every: everySecs * 1000 }] },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: CATCHUP_MS },
    action: { type: 'startWorkflow', workflowType: RETENTION_WORKFLOW, workflowId: id, taskQueue, args: [] },
  }
}

async function keepSchedule(client: ScheduleClient, wanted: Schedule): Promise<void> {
  try {
    await client.create(wanted)
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error
    const handle = client.getHandle(wanted.scheduleId)
    if (isAs(wanted, await handle.describe())) return
    // A schedule that an operator has paused stays paused.
    await handle.update(({ state }) => ({ ...wanted, state }))
  }
}

function isAs(wanted: Schedule, { spec, policies, action }: ScheduleDescription): boolean {
  return (
    spec.intervals?.length === 1 &&
    spec.intervals[0]?.every === wanted.spec.intervals?.[0]?.every &&
    policies.overlap === wanted.policies?.overlap &&
    policies.catchupWindow === wanted.policies?.catchupWindow &&
    action.workflowType === wanted.action.workflowType &&
    action.taskQueue === wanted.action.taskQueue
  )
}
