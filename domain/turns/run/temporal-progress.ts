import { isRecord } from '../../../lib/is-record.ts'
import { storableText } from '../../../lib/postgres-text.ts'
import { sleep } from '../../../lib/sleep.ts'
import type { TemporalTarget } from '../../../workflows/messages.ts'
import { appendEvents } from '../../events/log/append.ts'
import { progressStep } from '../../events/log/steps.ts'
import { toId } from '../../kit/ids.ts'
import type { Progress } from '../../tools/capabilities/tool-output.ts'
import { readQueueKey } from '../../tools/task-queues/key.ts'
import { UnreadablePayload } from '../../tools/task-queues/sealing.ts'
import type { Deps } from '../deps.ts'
import type { TurnPlace } from '../turn-place.ts'
import { loadCall } from './tool.ts'

/** Each look at a call takes longer than the one before, so that a call of hours costs little. */
const MIN_PAUSE_MS = 500
const MAX_PAUSE_MS = 15_000
const PAUSE_FACTOR = 1.05
const MAX_REPORTS = 1000
const MAX_MESSAGE_LENGTH = 1000

export type WatchedCall = { iteration: number; position: number; activityId: string; target: TemporalTarget }

/**
 * Publishes the heartbeats of an activity of the turn's workflow as progress of its call, until the activity ends.
 * `watch` counts the attempts at watching it. Rejects with the signal's reason.
 */
export async function watchTemporalCall(
  deps: Deps,
  turn: TurnPlace,
  { iteration, position, activityId, target }: WatchedCall,
  watch: number,
  signal: AbortSignal,
): Promise<void> {
  const call = await loadCall(deps, turn, iteration, position)
  const key = await readQueueKey(deps, turn.organizationId, target.taskQueue)
  if (call === undefined || key === undefined) return
  const limited = { pauseMs: MIN_PAUSE_MS, reports: 0, shown: '', last: 0 }
  while (limited.reports < MAX_REPORTS) {
    const activity = await deps.workflows.readActivity(turn.turnId, activityId)
    if (activity === undefined) return
    const { heartbeat } = activity
    const report = heartbeat && nextReport(limited, () => deps.sealing.open(heartbeat, key))
    if (report !== undefined) {
      const step = progressStep(iteration, watch, limited.reports, call.id)
      const data = { turn_id: toId('turn', turn.turnId), tool_call_id: call.id, ...report }
      const appended = await appendEvents(deps, turn, [{ type: 'tool.progress', step, data }])
      if (appended.outcome !== 'appended') return
    }
    await sleep(limited.pauseMs, signal)
    signal.throwIfAborted()
    limited.pauseMs = Math.min(MAX_PAUSE_MS, limited.pauseMs * PAUSE_FACTOR)
  }
}

type Reported = { reports: number; shown: string; last: number }

/** Returns the progress that a heartbeat tells of, and notes it. Undefined when it tells nothing new. */
function nextReport(reported: Reported, open: () => unknown): Progress | undefined {
  const details = openDetails(open)
  const shown = JSON.stringify(details)
  if (details === undefined || shown === undefined || shown === reported.shown) return undefined
  const { progress = reported.last + 1, ...rest } = toProgress(details)
  // Progress grows with each event.
  if (progress <= reported.last) return undefined
  reported.reports++
  reported.shown = shown
  reported.last = progress
  return { progress, ...rest }
}

function openDetails(open: () => unknown): unknown {
  try {
    return open()
  } catch (error) {
    if (error instanceof UnreadablePayload) return undefined
    throw error
  }
}

/** Reads details: a number, a text, or an object with `progress`, `total` and `message`; anything else is shown as JSON. */
function toProgress(details: unknown): Partial<Progress> {
  if (typeof details === 'number') return isFinitePositive(details) ? { progress: details } : {}
  if (!isRecord(details)) return { message: toMessage(details) }
  const { progress, total, message } = details
  if (progress === undefined && message === undefined) return { message: toMessage(details) }
  return {
    ...(isFinitePositive(progress) && { progress }),
    ...(isFinitePositive(total) && { total }),
    ...(message !== undefined && { message: toMessage(message) }),
  }
}

const isFinitePositive = (value: unknown): value is number => typeof value === 'number' && value > 0 && value < Infinity

function toMessage(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return storableText(text.slice(0, MAX_MESSAGE_LENGTH).replace(/\s+/g, ' '))
}
