import { asUuid } from '../../kit/ids.ts'
import { cancelOwnTurn } from '../../turns/control/cancel.ts'
import type { Deps } from '../deps.ts'
import type { HttpAnswer } from '../targets/result.ts'

export type ExecutionPlace = { organizationId: string; executionId: string }

export const INTERNAL_ERROR = 'The execution failed because of an error in the service.'

/** Columns of an attempt's answer. They replace an earlier attempt's. */
export const answerColumns = ({ httpStatus, answer }: Partial<HttpAnswer> = {}) => ({
  httpStatus: httpStatus ?? null,
  answer: answer ?? null,
})

/**
 * Ends an execution: as failed with an error, else as completed. Returns false, and does nothing, if it has already
 * ended, or if `attempts` is not the number of its latest attempt.
 */
export async function endExecution(
  deps: Deps,
  { organizationId, executionId }: ExecutionPlace,
  error: string | null,
  attempt?: { attempts: number; answered?: HttpAnswer | undefined },
): Promise<boolean> {
  const attempts = attempt?.attempts ?? null
  const { httpStatus, answer } = answerColumns(attempt?.answered)
  const ended = await deps.db.$executeRaw`
    UPDATE schedule_executions SET
      status = ${error === null ? 'completed' : 'failed'}::schedule_execution_status, error = ${error},
      started_at = coalesce(started_at, clock_timestamp()), completed_at = clock_timestamp(),
      http_status = CASE WHEN ${attempts}::integer IS NULL THEN http_status ELSE ${httpStatus}::integer END,
      answer = CASE WHEN ${attempts}::integer IS NULL THEN answer ELSE ${answer} END
    WHERE id = ${executionId}::uuid AND organization_id = ${organizationId}::uuid AND status IN ('pending', 'running')
      AND (${attempts}::integer IS NULL OR attempts = ${attempts}::integer)`
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
