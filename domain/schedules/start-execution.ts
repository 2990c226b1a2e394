import { warnRarely } from '../../lib/warn-rarely.ts'
import type { Schedule } from '../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'

type Started = Pick<Schedule, 'id' | 'organizationId' | 'sessionId' | 'targetName'>

/** Starts the workflow of an execution. Never rejects: the sweeper starts one whose start fails here. */
export async function startSoon(deps: Deps, schedule: Started, executionId: string): Promise<void> {
  const { id: scheduleId, organizationId, sessionId, targetName } = schedule
  try {
    await deps.workflows.startExecution({ executionId, scheduleId, organizationId, sessionId, targetName })
  } catch (error) {
    const told = { execution: executionId, err: (error as Error).message }
    warnRarely(deps.log, told, 'execution not started; the sweeper will start it')
  }
}
