import { warnRarely } from '../../../lib/warn-rarely.ts'
import type { Schedule } from '../../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import type { RecordedRun } from './record-runs.ts'

type Started = Pick<Schedule, 'id' | 'organizationId' | 'sessionId' | 'targetType' | 'targetName'>

/** Starts the workflow of an execution. Never rejects: the sweeper repeats a failed start. */
export async function startSoon(deps: Deps, schedule: Started, { id, scheduledAt }: RecordedRun): Promise<void> {
  const { id: scheduleId, organizationId, targetType, targetName } = schedule
  // A session created for an agent has the execution's id.
  const sessionId = targetType === 'workflow' ? (schedule.sessionId ?? id) : null
  try {
    const started = { executionId: id, scheduleId, organizationId, sessionId, targetName, scheduledAt }
    await deps.workflows.startExecution(started, await deps.owners.ownerOf(organizationId))
  } catch (error) {
    const logFields = { execution: id, err: (error as Error).message }
    warnRarely(deps.log, logFields, 'execution not started; the sweeper will start it')
  }
}
