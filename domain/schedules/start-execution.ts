import { warnRarely } from '../../lib/warn-rarely.ts'
import type { Prisma, Schedule } from '../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import type { RecordedRun } from './record-runs.ts'

/** Whether each execution has a session of its own, with its id. */
const hasOwnSession = ({ targetInput }: Schedule): boolean => 'agent_id' in (targetInput as Prisma.JsonObject)

/** Starts the workflow of an execution. Never rejects: the sweeper starts one whose start fails here. */
export async function startSoon(deps: Deps, schedule: Schedule, { id, scheduledAt }: RecordedRun): Promise<void> {
  const { id: scheduleId, organizationId, targetName } = schedule
  const sessionId = schedule.sessionId ?? (hasOwnSession(schedule) ? id : null)
  try {
    await deps.workflows.startExecution({
      executionId: id,
      scheduleId,
      organizationId,
      sessionId,
      targetName,
      scheduledAt,
    })
  } catch (error) {
    const told = { execution: id, err: (error as Error).message }
    warnRarely(deps.log, told, 'execution not started; the sweeper will start it')
  }
}
