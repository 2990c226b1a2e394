import type { RetryPolicy } from '../../../contract/schedules.ts'
import type { ExecutionOutcome } from '../../../workflows/messages.ts'
import type { Deps } from '../deps.ts'
import { disableSchedule } from '../disable.ts'
import { type BegunExecution, lostAttempts } from '../targets/begun-execution.ts'
import type { HttpAnswer } from '../targets/result.ts'
import { runTarget } from '../targets/run.ts'
import { answerColumns, type ExecutionPlace, endExecution, INTERNAL_ERROR } from './end-execution.ts'

const DEFAULT_RETRY = { max_attempts: 3, initial_interval_ms: 1000, max_interval_ms: 60_000, backoff_coefficient: 2 }
/** Consecutive attempts that may be lost with their workers before the execution fails. */
const MAX_LOST_ATTEMPTS = 20

/**
 * Makes an attempt of an execution and records its outcome. An ended execution is not run again, and an execution with
 * a posted message waits for its turn. Of several attempts only the latest ends it.
 */
export async function execute(deps: Deps, place: ExecutionPlace, signal: AbortSignal): Promise<ExecutionOutcome> {
  const execution = await begin(deps, place)
  if (execution === undefined) return readOutcome(deps, place)
  if (lostAttempts(execution) > MAX_LOST_ATTEMPTS) return settle(deps, place, execution, INTERNAL_ERROR)
  if (execution.attempts > 1 && (await hasTurn(deps, place))) {
    return postpone(deps, place, execution, { outcome: 'waits' })
  }
  const result = await runTarget(deps, execution, signal)
  signal.throwIfAborted()
  if (result.outcome === 'waits') return postpone(deps, place, execution, { outcome: 'waits' })
  if (result.outcome === 'completed') return settle(deps, place, execution, null, result.answered)
  if (result.disables) await disableSchedule(deps, execution.schedule, 'its target cannot be used')
  const afterMs = result.isTemporary ? retryDelayMs(execution) : undefined
  if (afterMs === undefined) return settle(deps, place, execution, result.error, result.answered)
  return postpone(deps, place, execution, { outcome: 'retry', failures: execution.attempts, afterMs }, result.answered)
}

/** Begins an attempt. Undefined if the execution has ended or is gone. */
async function begin(deps: Deps, { organizationId, executionId }: ExecutionPlace): Promise<BegunExecution | undefined> {
  const begun = await deps.db.$executeRaw`
    UPDATE schedule_executions SET
      status = 'running', started_at = coalesce(started_at, clock_timestamp()), attempts = attempts + 1,
      process = ${deps.attempts.process}::bigint
    WHERE id = ${executionId}::uuid AND organization_id = ${organizationId}::uuid AND status IN ('pending', 'running')`
  if (begun === 0) return undefined
  const where = { id: executionId, organizationId }
  return (await deps.db.scheduleExecution.findFirst({ where, include: { schedule: true } })) ?? undefined
}

/** Whether an earlier attempt has posted the message. The schedule's target may have changed since. */
const hasTurn = async ({ db }: Deps, { organizationId, executionId }: ExecutionPlace): Promise<boolean> =>
  (await db.turn.count({ where: { id: executionId, organizationId } })) > 0

/** Ends the execution, unless a newer attempt has begun or it has ended meanwhile. */
async function settle(
  deps: Deps,
  place: ExecutionPlace,
  { attempts }: BegunExecution,
  error: string | null,
  answered?: HttpAnswer,
) {
  await endExecution(deps, place, error, { attempts, answered })
  return readOutcome(deps, place)
}

/** Records that the attempt was not lost, although the execution continues. */
async function postpone(
  deps: Deps,
  { organizationId, executionId }: ExecutionPlace,
  { attempts }: BegunExecution,
  outcome: ExecutionOutcome,
  answered: HttpAnswer | undefined = undefined,
): Promise<ExecutionOutcome> {
  const where = { id: executionId, organizationId, attempts, status: 'running' } as const
  await deps.db.scheduleExecution.updateMany({ where, data: { settledAttempt: attempts, ...answerColumns(answered) } })
  return outcome
}

/** Returns the delay of the next attempt, in ms. Undefined after the last. */
function retryDelayMs({ attempts, schedule }: BegunExecution): number | undefined {
  if (schedule.retryPolicy === null) return undefined
  // Parsed by the contract when it was written.
  const policy = { ...DEFAULT_RETRY, ...(schedule.retryPolicy as RetryPolicy) }
  if (attempts >= policy.max_attempts) return undefined
  const delayMs = policy.initial_interval_ms * policy.backoff_coefficient ** (attempts - 1)
  return Math.round(Math.min(delayMs, policy.max_interval_ms))
}

/** Returns the outcome that another attempt or the turn has recorded. A missing execution has failed. */
async function readOutcome(deps: Deps, { organizationId, executionId }: ExecutionPlace): Promise<ExecutionOutcome> {
  const where = { id: executionId, organizationId }
  const row = await deps.db.scheduleExecution.findFirst({ where, select: { status: true } })
  if (row?.status === 'running' || row?.status === 'pending') {
    throw new Error('A newer attempt of the execution has begun.')
  }
  return { outcome: row?.status === 'completed' ? 'completed' : 'failed' }
}
