import { isRecord } from '../../../lib/is-record.ts'
import { storableJson, storableText } from '../../../lib/postgres-text.ts'
import { sleep } from '../../../lib/sleep.ts'
import type { TemporalEnd, TemporalOutcome, TemporalTarget } from '../../../workflows/messages.ts'
import { appendEvents } from '../../events/log/append.ts'
import { callStep } from '../../events/log/steps.ts'
import { newUuid } from '../../kit/ids.ts'
import { UnreadableSecret } from '../../kit/secrets.ts'
import { readQueueKey } from '../../tools/task-queues/key.ts'
import { type Payload, type QueueKey, UnreadablePayload } from '../../tools/task-queues/sealing.ts'
import { type CallResult, callCompleted, callStarted } from '../calls.ts'
import type { Deps } from '../deps.ts'
import type { TurnPlace } from '../turn-place.ts'
import { isApproved, type LoadedCall, loadCall, MAX_ERROR_LENGTH, UNAPPROVED } from './tool.ts'

/**
 * Limits on what passes through Temporal: the arguments of 16 calls at once fit into one of its requests, and their
 * results into the history of a run.
 */
const MAX_ARGUMENTS_BYTES = 128 * 1024
const MAX_RESULT_BYTES = 1024 * 1024
/** Pause between two looks for a worker of a workflow. */
const POLLER_PAUSE_MS = 1000

/**
 * Records the start of a call that a worker of the organization runs, and returns its encrypted arguments. A call that
 * cannot run gets its result instead. May be repeated: each event is recorded once.
 */
export async function prepareTemporalCall(
  deps: Deps,
  turn: TurnPlace,
  iteration: number,
  position: number,
  signal: AbortSignal,
): Promise<TemporalOutcome | { sealed: Payload }> {
  const call = await loadCall(deps, turn, iteration, position)
  if (call === undefined) return { outcome: 'ended' }
  if (call.isCompleted) return { outcome: 'done' }
  const started = await appendEvents(deps, turn, [callStarted(iteration, newUuid(), call)])
  if (started.outcome !== 'appended') return { outcome: 'ended' }
  const target = call.tool?.temporal
  const key = target && (await readKey(deps, turn, target))
  const refusal = refusalOf(call, key)
  if (key === undefined || target === undefined || refusal !== undefined) {
    return complete(deps, turn, iteration, call, { status: 'error', error: refusal ?? GONE })
  }
  // Temporal limits the time until an activity starts, and not until a workflow does.
  if (target.kind === 'workflow' && !(await hasPollerSoon(deps, target, signal))) {
    return complete(deps, turn, iteration, call, unpolled(target))
  }
  return { sealed: deps.sealing.seal(call.arguments, key) }
}

const GONE = 'There is no such tool any more.'

function refusalOf(call: LoadedCall, key: QueueKey | undefined): string | undefined {
  const { tool, planned, policy } = call
  if (tool?.temporal === undefined) return GONE
  // Its workflow has the place and the limits of the tool that was planned.
  if (planned !== null && planned.version !== tool.version) return UNAPPROVED.error
  if (policy === 'requires_approval' && !isApproved(call)) return UNAPPROVED.error
  if (key === undefined)
    return `The task queue "${tool.temporal.taskQueue}" is not registered, or its key is unreadable.`
  const bytes = Buffer.byteLength(JSON.stringify(call.arguments))
  if (bytes <= MAX_ARGUMENTS_BYTES) return undefined
  return `The arguments have ${bytes} bytes; at most ${MAX_ARGUMENTS_BYTES} can be given to this tool.`
}

async function readKey(
  deps: Deps,
  { organizationId }: TurnPlace,
  { taskQueue }: TemporalTarget,
): Promise<QueueKey | undefined> {
  try {
    return await readQueueKey(deps, organizationId, taskQueue)
  } catch (error) {
    if (!(error instanceof UnreadableSecret)) throw error
    deps.log.warn({ taskQueue, problem: error.message }, 'key of a task queue not read')
    return undefined
  }
}

async function hasPollerSoon(
  { workflows }: Deps,
  { taskQueue, scheduleToStartMs }: TemporalTarget,
  signal: AbortSignal,
): Promise<boolean> {
  for (const until = performance.now() + scheduleToStartMs; ; ) {
    if (await workflows.hasPoller(taskQueue)) return true
    if (performance.now() > until) return false
    await sleep(POLLER_PAUSE_MS, signal)
    signal.throwIfAborted()
  }
}

/** Records the result of a call that a worker of the organization has run. May be repeated. */
export async function endTemporalCall(
  deps: Deps,
  turn: TurnPlace,
  iteration: number,
  position: number,
  target: TemporalTarget,
  end: TemporalEnd,
  payload: Payload | undefined,
): Promise<TemporalOutcome> {
  const call = await loadCall(deps, turn, iteration, position)
  if (call === undefined) return { outcome: 'ended' }
  if (call.isCompleted) return { outcome: 'done' }
  const key = payload && (await readKey(deps, turn, target))
  const open = (sealed: Payload): unknown => {
    if (key === undefined)
      throw new UnreadablePayload(`The task queue "${target.taskQueue}" is not registered any more.`)
    return deps.sealing.open(sealed, key)
  }
  return complete(deps, turn, iteration, call, resultOf(target, end, payload, open))
}

async function complete(
  deps: Deps,
  turn: TurnPlace,
  iteration: number,
  call: LoadedCall,
  result: CallResult,
): Promise<TemporalOutcome> {
  const where = { turnId: turn.turnId, type: 'tool.started', step: callStep(iteration, call.id) }
  const started = await deps.db.event.findFirst({ where, select: { execId: true, ts: true } })
  const durationMs = started === null ? 0 : Math.max(0, Date.now() - started.ts.getTime())
  const completed = callCompleted(iteration, started?.execId ?? newUuid(), call, { ...result, durationMs })
  const recorded = await appendEvents(deps, turn, [completed])
  return { outcome: recorded.outcome === 'appended' ? 'done' : 'ended' }
}

const inSeconds = (ms: number): string => `${Math.round(ms / 1000)} s`

const unpolled = ({ taskQueue, scheduleToStartMs }: TemporalTarget): CallResult => ({
  status: 'error',
  error: `No worker took the call from the task queue "${taskQueue}" within ${inSeconds(scheduleToStartMs)}.`,
})

function resultOf(
  target: TemporalTarget,
  end: TemporalEnd,
  payload: Payload | undefined,
  open: (payload: Payload) => unknown,
): CallResult {
  if (end.status === 'timeout') return timeoutOf(target, end.limit)
  try {
    if (end.status === 'failed') return failureOf(end, payload && open(payload))
    if (end.status === 'plain' || payload === undefined)
      throw new UnreadablePayload('The answer of the worker is not encrypted.')
    return successOf(payload, open)
  } catch (error) {
    if (!(error instanceof UnreadablePayload)) throw error
    return { status: 'error', error: error.message }
  }
}

function timeoutOf(target: TemporalTarget, limit: string): CallResult {
  if (limit === 'SCHEDULE_TO_START') return unpolled(target)
  if (limit === 'HEARTBEAT')
    return { status: 'timeout', error: `The worker was not heard of for ${inSeconds(target.heartbeatMs ?? 0)}.` }
  return { status: 'timeout', error: `The tool had no result within ${inSeconds(target.timeoutMs)}.` }
}

/** `decrypted`: the message and the stack of a worker that encrypts its failures. */
function failureOf({ message, type }: Extract<TemporalEnd, { status: 'failed' }>, decrypted: unknown): CallResult {
  // Temporal ends an activity that returns more than it stores.
  if (type === '' && message.includes('exceeds size limit'))
    return { status: 'error', error: `The result is too large; at most ${MAX_RESULT_BYTES} bytes can be given back.` }
  const own = isRecord(decrypted) && typeof decrypted.message === 'string' ? decrypted.message : message
  const error = storableText((own || type || 'The tool failed.').slice(0, MAX_ERROR_LENGTH))
  return { status: 'error', error }
}

function successOf(payload: Payload, open: (payload: Payload) => unknown): CallResult {
  const sealedBytes = payload.data?.length ?? 0
  // The encryption adds some bytes.
  const value = sealedBytes <= 2 * MAX_RESULT_BYTES ? open(payload) : undefined
  const text = JSON.stringify(storableJson(value ?? null))
  const bytes = sealedBytes <= 2 * MAX_RESULT_BYTES ? Buffer.byteLength(text) : sealedBytes
  if (bytes <= MAX_RESULT_BYTES) return { status: 'success', parts: [{ type: 'text', text }] }
  return {
    status: 'error',
    error: `The result has ${bytes} bytes; at most ${MAX_RESULT_BYTES} can be given back.`,
  }
}
