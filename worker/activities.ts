import { ApplicationFailure, Context } from '@temporalio/activity'
import type { Deps } from '../domain/deps.ts'
import { DomainError } from '../domain/errors.ts'
import { failTurn } from '../domain/turns/lifecycle.ts'
import { type Attempt, reason } from '../domain/turns/reason.ts'
import type { ReasonOutcome, TurnErrorCode, TurnInput } from '../workflows/messages.ts'

export type TurnActivities = {
  reason(turn: TurnInput, iteration: number): Promise<ReasonOutcome>
  failTurn(turn: TurnInput, iteration: number, code: TurnErrorCode): Promise<void>
}

/** The workflow's heartbeat limit is 4 s. */
const HEARTBEAT_MS = 1000

export const createActivities = (deps: Deps): TurnActivities => ({
  failTurn: (turn, iteration, code) => run(deps, () => failTurn(deps, turn, `reason:${iteration}`, code)),
  reason: (turn, iteration) =>
    run(deps, async () => {
      const reasoned = await heartbeating((attempt) => reason(deps, turn, iteration, attempt))
      if (reasoned.outcome === 'failed')
        throw ApplicationFailure.nonRetryable('the model could not answer', reasoned.code)
      if (reasoned.outcome === 'retry') {
        const message = 'the model failed; it is asked again'
        throw ApplicationFailure.create({ message, type: 'model_failed', nextRetryDelay: reasoned.afterMs })
      }
      return { outcome: reasoned.outcome }
    }),
})

async function heartbeating<T>(work: (attempt: Attempt) => Promise<T>): Promise<T> {
  const { info, cancellationSignal, heartbeat } = Context.current()
  const timer = setInterval(() => heartbeat(), HEARTBEAT_MS)
  try {
    return await work({ fence: info.currentAttemptScheduledTimestampMs, signal: cancellationSignal })
  } finally {
    clearInterval(timer)
  }
}

/**
 * What goes into Temporal's history about a failure is its kind: the cause may quote a prompt or an address, and is
 * logged here only. A caller's mistake is not tried again.
 */
async function run<T>(deps: Deps, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ApplicationFailure) throw error
    const { info, cancellationSignal } = Context.current()
    if (cancellationSignal.aborted) throw cancellationSignal.reason
    const { activityType, attempt, workflowExecution } = info
    deps.log.error({ err: error, activityType, attempt, workflowId: workflowExecution?.workflowId }, 'activity failed')
    const nonRetryable = error instanceof DomainError
    throw ApplicationFailure.create({
      message: `${activityType} failed; see the worker's log`,
      type: 'internal_error',
      nonRetryable,
    })
  }
}
