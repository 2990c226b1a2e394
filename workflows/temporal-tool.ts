import { RawValue } from '@temporalio/common'
import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  ChildWorkflowCancellationType,
  ChildWorkflowFailure,
  executeChild,
  ParentClosePolicy,
  scheduleActivity,
  sleep,
  TemporalFailure,
  TimeoutFailure,
  WorkflowIdReusePolicy,
} from '@temporalio/workflow'
import { endTemporalCall, prepareTemporalCall, watchTemporalCall } from './activities.ts'
import type { TemporalEnd, TemporalOutcome, TemporalTarget, TurnInput } from './messages.ts'

/** Time that a cancelled child workflow has for its own end. Then it is terminated, as its parent ends. */
const CHILD_GRACE_MS = 10_000
/** Time beside a call's own limits for what the service does. */
const SERVICE_MS = 60_000
/** Length limit of a failure's message in an activity's input. */
const MAX_MESSAGE_LENGTH = 10_000

type Call = { position: number; tool: string; target: TemporalTarget }

/**
 * Runs a call on a worker of the organization, as an activity or a child workflow of the turn. Arguments and result pass
 * through encrypted.
 */
export async function runTemporalCall(
  input: TurnInput,
  iteration: number,
  call: Call,
): Promise<TemporalOutcome['outcome']> {
  const { position, tool, target } = call
  const options = {
    summary: `prepare · ${tool}`,
    startToCloseTimeout: SERVICE_MS + (target.kind === 'workflow' ? target.scheduleToStartMs : 0),
  }
  const prepared = await prepareTemporalCall.executeWithOptions(options, [input, iteration, position])
  if (!(prepared instanceof RawValue)) return prepared.outcome
  const [end, payload] = await callWorker(input, iteration, call, prepared)
  return (await endTemporalCall(input, iteration, position, target, end, payload)).outcome
}

type Ended = [TemporalEnd, RawValue | undefined]

async function callWorker(input: TurnInput, iteration: number, call: Call, args: RawValue): Promise<Ended> {
  const { kind } = call.target
  try {
    const result = await (kind === 'activity' ? runActivity : runChild)(input, iteration, call, args)
    return result instanceof RawValue ? [{ status: 'completed' }, result] : [{ status: 'plain' }, undefined]
  } catch (error) {
    // A worker may also report a cancellation that nobody asked for.
    if (CancellationScope.current().consideredCancelled) throw error
    return endOf(error)
  }
}

/** Runs an activity. Beside it another one, of the service, publishes its heartbeats. */
async function runActivity(
  input: TurnInput,
  iteration: number,
  { position, tool, target }: Call,
  args: RawValue,
): Promise<unknown> {
  const { name, taskQueue, timeoutMs, scheduleToStartMs, heartbeatMs, retry } = target
  const { maximumAttempts, maximumInterval } = retry
  const activityId = `tool-${iteration}-${position}`
  const mostMs = maximumAttempts * (timeoutMs + scheduleToStartMs + maximumInterval)
  const options = {
    activityId,
    summary: `tool · ${tool}`,
    taskQueue,
    startToCloseTimeout: timeoutMs,
    scheduleToStartTimeout: scheduleToStartMs,
    scheduleToCloseTimeout: mostMs,
    ...(heartbeatMs === undefined ? {} : { heartbeatTimeout: heartbeatMs }),
    retry,
    cancellationType: ActivityCancellationType.TRY_CANCEL,
  }
  const running = scheduleActivity(name, [args], options)
  const watch = new CancellationScope()
  const watching = { summary: `progress · ${tool}`, startToCloseTimeout: mostMs, scheduleToCloseTimeout: mostMs }
  const watched = { iteration, position, activityId, target }
  // Without it the call goes on all the same.
  watch.run(() => watchTemporalCall.executeWithOptions(watching, [input, watched])).catch(() => {})
  try {
    return await running
  } finally {
    watch.cancel()
  }
}

/** Runs a child workflow, once whatever happens. A cancelled turn waits for its end for a while. */
async function runChild(
  input: TurnInput,
  iteration: number,
  { position, tool, target }: Call,
  args: RawValue,
): Promise<unknown> {
  const running = executeChild(target.name, {
    workflowId: `tool-${input.turnId}-${iteration}-${position}`,
    workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
    staticSummary: `tool · ${tool}`,
    taskQueue: target.taskQueue,
    args: [args],
    workflowExecutionTimeout: target.timeoutMs,
    parentClosePolicy: ParentClosePolicy.TERMINATE,
    cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
  })
  const givenUp = CancellationScope.current().cancelRequested.catch(async (error: unknown) => {
    await CancellationScope.nonCancellable(() => sleep(CHILD_GRACE_MS))
    throw error
  })
  return Promise.race([running, givenUp])
}

/** Reads what went wrong: limits, and the first failure's words. Its text may be encrypted. */
function endOf(error: unknown): Ended {
  const isWrapped = error instanceof ActivityFailure || error instanceof ChildWorkflowFailure
  const cause = isWrapped ? error.cause : error
  if (cause instanceof TimeoutFailure) return [{ status: 'timeout', limit: cause.timeoutType ?? 'unknown' }, undefined]
  const message = cause instanceof Error ? cause.message.slice(0, MAX_MESSAGE_LENGTH) : ''
  const type = cause instanceof ApplicationFailure ? (cause.type ?? '') : ''
  const sealed = cause instanceof TemporalFailure ? cause.failure?.encodedAttributes : undefined
  return [{ status: 'failed', message, type }, sealed ? RawValue.fromPayload(sealed) : undefined]
}
