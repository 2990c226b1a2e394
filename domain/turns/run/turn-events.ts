import type { TokenUsage } from '../../../contract/kit/common.ts'
import type { TurnReport } from '../../../workflows/messages.ts'
import type { NewEvent } from '../../events/log/append.ts'
import { toId } from '../../kit/ids.ts'
import { addCosts } from '../../models/llm/cost.ts'
import type { ModelCall } from './model-call.ts'
import { type PricedAnswer, readSteers, unusualFinish } from './reason-events.ts'
import type { TurnContext } from './turn-context.ts'

/**
 * Returns the events that begin a turn. Repeats are skipped. `session.started` and `session.activated` are there already
 * if the message came to an idle session, except in turns that an earlier release accepted.
 */
export function turnStartedEvents(context: TurnContext): NewEvent[] {
  const turn_id = toId('turn', context.turnId)
  const input_message_id = toId('message', context.turnId)
  const agent_id = context.agentId && toId('agent', context.agentId)
  const model_id = context.modelId && toId('model', context.modelId)
  return [
    { type: 'session.started', data: { harness_id: toId('harness', context.harnessId), agent_id, model_id } },
    { type: 'session.activated', data: { turn_id, input_message_id } },
    { type: 'turn.started', data: { turn_id, input_message_id, input_content: context.inputContent } },
  ]
}

/** Usage and time of an answered turn, with the reason for its answer's end unless it ended by itself. */
type TurnEnd = {
  iterations: number
  usage: ReturnType<typeof addUsage>
  costUsd: string | null
  durationMs: number
  unusual: ReturnType<typeof unusualFinish>
  /** The turn's output, if it has a schema of it. */
  output: Record<string, unknown> | undefined
}

/** Sums up an answered turn. `last` is the answer of its last step. */
export const endOf = (
  context: TurnContext,
  iterations: number,
  last: Pick<PricedAnswer, 'usage' | 'costUsd' | 'finishReason'>,
  output: Record<string, unknown> | undefined,
): TurnEnd => ({
  iterations,
  usage: addUsage(context.usage, last.usage),
  costUsd: addCosts(context.costUsd, last.costUsd),
  durationMs: Date.now() - (context.startedAt?.getTime() ?? Date.now()),
  unusual: unusualFinish(last),
  output,
})

/** Returns the events that end an answered turn. `session.idled` is recorded only when the queue is empty. */
export function turnEndedEvents(context: TurnContext, end: TurnEnd): NewEvent[] {
  const { turnId, inputContent } = context
  const summary = { turn_id: toId('turn', turnId), iterations: end.iterations, usage: end.usage }
  const output = end.output === undefined ? {} : { output: end.output }
  const more = { cost_usd: end.costUsd, duration_ms: end.durationMs, input_content: inputContent }
  return [
    { type: 'turn.completed', data: { ...summary, ...end.unusual, ...output, ...more, ...readSteers(context) } },
    { type: 'session.idled', data: summary },
  ]
}

/** Returns what the workflow of an answered turn shows of it. */
export function turnReport(
  { context, model }: ModelCall,
  { finishReason }: Pick<PricedAnswer, 'finishReason'>,
  { iterations, usage, durationMs }: TurnEnd,
): TurnReport {
  const { input_tokens: inputTokens, output_tokens: outputTokens } = usage
  const timeline = `/console#/sessions/${toId('session', context.sessionId)}/turns/${toId('turn', context.turnId)}`
  return {
    outcome: 'completed',
    model: model.name,
    ...{ iterations, inputTokens, outputTokens, durationMs, finishReason, timeline },
  }
}

const addUsage = (sum: TokenUsage, more: TokenUsage): TokenUsage => ({
  input_tokens: sum.input_tokens + more.input_tokens,
  output_tokens: sum.output_tokens + more.output_tokens,
  cache_read_tokens: (sum.cache_read_tokens ?? 0) + (more.cache_read_tokens ?? 0),
  cache_creation_tokens: (sum.cache_creation_tokens ?? 0) + (more.cache_creation_tokens ?? 0),
})
