import { ApplicationFailure, Context } from '@temporalio/activity'
import { RawValue } from '@temporalio/common'
import type { Deps } from '../domain/deps.ts'
import { DomainError } from '../domain/kit/errors.ts'
import { fromId } from '../domain/kit/ids.ts'
import { deliverNext } from '../domain/organization-events/webhooks/deliver.ts'
import { launchDue } from '../domain/schedules/clock/launch.ts'
import {
  cancelExecution,
  type ExecutionPlace,
  endExecution,
  INTERNAL_ERROR,
} from '../domain/schedules/executions/end-execution.ts'
import { execute } from '../domain/schedules/executions/execute.ts'
import { cancelOwnTurn } from '../domain/turns/control/cancel.ts'
import { requestCalls, settleCalls, settleOverdueCalls } from '../domain/turns/control/client-calls.ts'
import { failTurn } from '../domain/turns/control/fail-turn.ts'
import { reason } from '../domain/turns/run/reason.ts'
import type { Attempt, Reasoned } from '../domain/turns/run/running-attempt.ts'
import { endTemporalCall, prepareTemporalCall } from '../domain/turns/run/temporal-call.ts'
import { type WatchedCall, watchTemporalCall } from '../domain/turns/run/temporal-progress.ts'
import { failTool, runTool } from '../domain/turns/run/tool.ts'
import { waitForPlace } from '../domain/turns/run/waiting-steps.ts'
import type { TurnPlace } from '../domain/turns/turn-place.ts'
import { deleteExpired } from '../domain/upkeep/retention.ts'
import { inLogContext } from '../lib/log-context.ts'
import { warnRarely } from '../lib/warn-rarely.ts'
import type {
  BeginOutcome,
  CallAbility,
  ExecutionInput,
  ExecutionOutcome,
  FailOutcome,
  LaneInput,
  LaneOutcome,
  LaunchInput,
  LaunchOutcome,
  ReasonOutcome,
  RetentionOutcome,
  RetryPlace,
  SettleOutcome,
  TemporalEnd,
  TemporalOutcome,
  TemporalTarget,
  ToolOutcome,
  TurnErrorCode,
  TurnInput,
  UnfinishedStep,
} from '../workflows/messages.ts'
import { createAllCalls, waitsForPlace } from './calls.ts'
import type { Heartbeats } from './heartbeats.ts'

/** The activities of a turn. `iteration` counts its model calls from 1, `position` the calls of one answer from 0. */
export type TurnActivities = {
  begin(turn: TurnInput, iteration: number): Promise<BeginOutcome>
  /** Ends as `unfinished` only if it `mayHandOver`: to a living process in which the step has begun. */
  reason(
    turn: TurnInput,
    iteration: number,
    retries?: RetryPlace,
    mayHandOver?: boolean,
  ): Promise<ReasonOutcome | UnfinishedStep>
  runTool(turn: TurnInput, iteration: number, position: number, ability?: CallAbility): Promise<ToolOutcome>
  failTool(turn: TurnInput, iteration: number, position: number): Promise<void>
  /** Resolves with the encrypted arguments of a call that a worker of the organization is to run. */
  prepareTemporalCall(turn: TurnInput, iteration: number, position: number): Promise<TemporalOutcome | RawValue>
  watchTemporalCall(turn: TurnInput, call: WatchedCall): Promise<void>
  /** `payload` is the worker's encrypted result or failure, if it has one. */
  endTemporalCall(
    turn: TurnInput,
    iteration: number,
    position: number,
    target: TemporalTarget,
    end: TemporalEnd,
    payload: RawValue | undefined,
  ): Promise<TemporalOutcome>
  requestCalls(turn: TurnInput, iteration: number): Promise<SettleOutcome>
  settleCalls(turn: TurnInput, iteration: number, isOverdue: boolean): Promise<SettleOutcome>
  failTurn(turn: TurnInput, iteration: number, code: TurnErrorCode): Promise<FailOutcome>
  cancelTurn(turn: TurnInput): Promise<void>
}

export type RetentionActivities = { deleteExpired(): Promise<RetentionOutcome> }

export type WebhookActivities = { deliver(lane: LaneInput): Promise<LaneOutcome> }

/** `scheduledAt`: the time at which Temporal was to start the launch, as ISO 8601. */
export type ScheduleActivities = {
  launch(schedule: LaunchInput, scheduledAt: string): Promise<LaunchOutcome>
  execute(execution: ExecutionInput): Promise<ExecutionOutcome>
  failExecution(execution: ExecutionInput): Promise<void>
  cancelExecution(execution: ExecutionInput): Promise<void>
}

/** Time after which a step that was begun before comes again when its owner has no place for it. */
const PLACE_RETRY_MS = 2000
/** Time after which an activity comes again that could not reach Postgres. A process that cannot soon takes no more. */
const AWAY_RETRY_MS = 400
const awayRetryMs = () => AWAY_RETRY_MS * (1 + Math.random() / 2)
/** Number of tries that come again so soon. */
const AWAY_RETRIES = 8
const placeRetryMs = () => PLACE_RETRY_MS * (1 + Math.random())

const CHILDREN = { in_workflow: 'unknown', with_children: 'may_start', after_child: 'after_child' } as const

type Activities = TurnActivities & ScheduleActivities & RetentionActivities & WebhookActivities

/** `queueOf` names the task queue on which a process alone takes activities. */
export const createActivities = (
  deps: Deps,
  heartbeats: Heartbeats,
  queueOf: (process: number) => string,
  calls = createAllCalls(),
): Activities => ({
  begin: (turn, iteration) =>
    run(deps, async () => {
      const owner = await deps.owners.ownerOf(fromId(turn.organizationId))
      const begun = await deps.attempts.begin(place(turn), iteration, owner, Context.current().cancellationSignal)
      // Its turn may come only after this workflow task.
      if (begun.outcome === 'ended') void cancelWorkflow(deps, turn)
      if (begun.outcome === 'full' || begun.outcome === 'waits') {
        const noted = await waitForPlace(deps, place(turn), iteration)
        return noted === 'waits' && begun.outcome === 'waits' ? { outcome: noted, isCapped: true } : { outcome: noted }
      }
      return begun.outcome === 'unfinished' ? unfinished(queueOf, begun) : begun
    }),
  reason: (turn, iteration, retries, mayHandOver = false) =>
    run(deps, async () => {
      const take = async (beating: Attempt) => {
        const attempt = { ...beating, mayHandOver }
        const adopted = await deps.attempts.adopt(place(turn), iteration, attempt)
        if (adopted !== undefined) return adopted
        // Temporal may hand an activity even to a worker that stops. It would ask the model and be cut off.
        if (deps.attempts.isClosed()) throw ApplicationFailure.retryable('the worker stops', 'worker_stops')
        const leave = deps.attempts.occupy(await deps.owners.ownerOf(place(turn).organizationId))
        if (leave === undefined) throw waitsForPlace(placeRetryMs())
        const reasoned = reason(deps, place(turn), iteration, attempt)
        return deps.attempts.abandoned.watch(place(turn).turnId, reasoned).finally(leave)
      }
      const reasoned = await heartbeats.during(take)
      if (reasoned.outcome === 'ended') await cancelWorkflow(deps, turn)
      if (reasoned.outcome === 'waits') throw waitsForPlace(placeRetryMs())
      return reasoned.outcome === 'claimed_elsewhere' ? unfinished(queueOf, reasoned) : toOutcome(reasoned, retries)
    }),
  runTool: (turn, iteration, position, ability) =>
    run(deps, async () => {
      const options = { mayAsk: ability !== undefined, children: CHILDREN[ability ?? 'in_workflow'] }
      const owner = await deps.owners.ownerOf(fromId(turn.organizationId))
      return calls.tools.run(owner, () =>
        heartbeats.during((attempt) => runTool(deps, place(turn), iteration, position, attempt, options)),
      )
    }),
  failTool: (turn, iteration, position) => run(deps, () => failTool(deps, place(turn), iteration, position)),
  prepareTemporalCall: (turn, iteration, position) =>
    run(deps, async () => {
      const prepare = ({ signal }: Attempt) => prepareTemporalCall(deps, place(turn), iteration, position, signal)
      const prepared = await heartbeats.during(prepare)
      return 'sealed' in prepared ? RawValue.fromPayload(prepared.sealed) : prepared
    }),
  watchTemporalCall: (turn, call) =>
    run(deps, async () => {
      const owner = await deps.owners.ownerOf(fromId(turn.organizationId))
      const { attempt } = Context.current().info
      return calls.watches.run(owner, () =>
        heartbeats.during(({ signal }) => watchTemporalCall(deps, place(turn), call, attempt, signal)),
      )
    }),
  endTemporalCall: (turn, iteration, position, target, end, payload) =>
    run(deps, () => {
      // A payload that is not encrypted has been read on its way, and says nothing that `end` does not say.
      const sealed = payload instanceof RawValue ? payload.payload : undefined
      return endTemporalCall(deps, place(turn), iteration, position, target, end, sealed)
    }),
  requestCalls: (turn, iteration) => run(deps, () => requestCalls(deps, place(turn), iteration)),
  settleCalls: (turn, iteration, isOverdue) =>
    run(deps, () => (isOverdue ? settleOverdueCalls : settleCalls)(deps, place(turn), iteration)),
  failTurn: (turn, iteration, code) => run(deps, () => failTurn(deps, place(turn), iteration, code)),
  cancelTurn: (turn) => run(deps, () => cancelOwnTurn(deps, place(turn))),
  launch: ({ organizationId, scheduleId }, scheduledAt) =>
    run(deps, async () => {
      const place = { organizationId: fromId(organizationId), scheduleId }
      const launched = await launchDue(deps, place, { scheduledAt: new Date(scheduledAt) })
      if (launched !== 'clock_stale') return launched
      throw ApplicationFailure.retryable('Temporal has to be told of a change of the schedule first', 'clock_due')
    }),
  execute: (execution) =>
    run(deps, async () => {
      const owner = await deps.owners.ownerOf(fromId(execution.organizationId))
      return calls.executions.run(owner, () =>
        heartbeats.during(({ signal }) => execute(deps, executionPlace(execution), signal)),
      )
    }),
  failExecution: (execution) =>
    run(deps, async () => {
      await endExecution(deps, executionPlace(execution), INTERNAL_ERROR)
    }),
  cancelExecution: (execution) => run(deps, () => cancelExecution(deps, executionPlace(execution))),
  deliver: ({ organizationId, webhookId, laneId }) =>
    run(deps, () => {
      const lane = { organizationId: fromId(organizationId), webhookId: fromId(webhookId), laneId }
      return calls.deliveries.run(lane.webhookId, () =>
        heartbeats.during(({ signal }) => deliverNext(deps, lane, signal)),
      )
    }),
  deleteExpired: () => run(deps, () => heartbeats.during(({ signal }) => deleteExpired(deps, signal))),
})

const place = ({ organizationId, sessionId, turnId }: TurnInput): TurnPlace => ({
  organizationId: fromId(organizationId),
  sessionId: fromId(sessionId),
  turnId: fromId(turnId),
})

/** Asks for the cancellation of a turn's workflow: a notice that the turn has ended may have come before the workflow. */
const cancelWorkflow = async (deps: Deps, turn: TurnInput): Promise<void> => {
  const { turnId, organizationId } = place(turn)
  try {
    await deps.workflows.cancelTurn(turnId, await deps.owners.ownerOf(organizationId))
  } catch (error) {
    const logFields = { turn: turn.turnId, err: (error as Error).message }
    warnRarely(deps.log, logFields, 'workflow of an ended turn not cancelled')
  }
}

const executionPlace = ({ organizationId, executionId }: ExecutionInput): ExecutionPlace => ({
  organizationId: fromId(organizationId),
  executionId,
})

const unfinished = (queueOf: (process: number) => string, { process }: { process?: number }): UnfinishedStep => ({
  outcome: 'unfinished',
  ...(process !== undefined && { taskQueue: queueOf(process) }),
})

function toOutcome(
  reasoned: Exclude<Reasoned, { outcome: 'claimed_elsewhere' | 'waits' }>,
  retries: RetryPlace,
): ReasonOutcome {
  if (reasoned.outcome === 'failed') {
    throw ApplicationFailure.nonRetryable('the turn cannot have its answer', reasoned.code)
  }
  if (reasoned.outcome === 'retry' && retries !== 'in_workflow') {
    const message = 'the model failed; it is asked again'
    throw ApplicationFailure.create({ message, type: 'model_failed', nextRetryDelay: reasoned.afterMs })
  }
  return reasoned
}

/**
 * Runs an activity. Temporal's history gets only the kind of a failure: the cause may quote a prompt or an address, so
 * it is only logged here. A caller's mistake is not retried.
 */
async function run<T>(deps: Deps, work: () => Promise<T>): Promise<T> {
  const { workflowId } = Context.current().info.workflowExecution ?? {}
  // The workflow of a turn has the turn's id.
  if (!workflowId?.startsWith('turn_')) return logged(deps, work)
  return inLogContext({ turn: workflowId }, () => logged(deps, work))
}

async function logged<T>(deps: Deps, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ApplicationFailure) throw error
    const { info, cancellationSignal } = Context.current()
    if (cancellationSignal.aborted) throw cancellationSignal.reason
    const { activityType, attempt, workflowExecution, isLocal } = info
    const logFields = { err: error, activityType, attempt, workflowId: workflowExecution?.workflowId }
    const nonRetryable = error instanceof DomainError
    const unavailability = nonRetryable ? undefined : deps.unavailability(error)
    if (unavailability !== undefined) {
      warnRarely(deps.log, logFields, 'activity failed; Temporal tries it again')
    } else {
      deps.log.error(logFields, 'activity failed')
    }
    throw ApplicationFailure.create({
      message: `${activityType} failed; see the worker's log`,
      type: 'internal_error',
      nonRetryable,
      // Another process may have what this one lacks.
      ...(unavailability === 'away' && !isLocal && attempt <= AWAY_RETRIES && { nextRetryDelay: awayRetryMs() }),
    })
  }
}
