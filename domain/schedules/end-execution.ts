import type { Deps } from '../deps.ts'
import { asUuid } from '../ids.ts'
import { cancelOwnTurn } from '../turns/control/cancel.ts'

export type ExecutionPlace = { organizationId: string; executionId: string }

export const INTERNAL_ERROR = 'The execution failed because of an error in the service.'

/**
 * Ends an execution: as failed with an error, else as completed. Returns false, and does nothing, when it has ended before,
 * or when `attempts` is not the number of its attempts.
 */
export async function endExecution(
  deps: Deps,
  { organizationId, executionId }: ExecutionPlace,
  error: string | null,
  attempts?: number,
): Promise<boolean> {
  const ended = await deps.db.$executeRaw`
    UPDATE schedule_executions SET
      status = ${error === null ? 'completed' : 'failed'}::schedule_execution_status, error = ${error},
      started_at = coalesce(started_at, clock_timestamp()), completed_at = clock_timestamp()
    WHERE id = ${executionId}::uuid AND organization_id = ${organizationId}::uuid AND status IN ('pending', 'running')
      AND (${attempts ?? null}::integer IS NULL OR attempts = ${attempts ?? null}::integer)`
  return ended > 0
}

/** Ends an execution whose workflow was cancelled in Temporal, and the turn that it waits for. */
export async function cancelExecution(deps: Deps, place: ExecutionPlace): Promise<void> {
  const { organizationId, executionId } = place
  const turn = await deps.db.turn.findFirst({ where: { id: executionId, organizationId }, select: { sessionId: true } })
  if (turn !== null) {
    await cancelOwnTurn(deps, { organizationId, sessionId: asUuid(turn.sessionId), turnId: asUuid(executionId) })
  }
  await endExecution(deps, place, 'The execution was cancelled.')
}
