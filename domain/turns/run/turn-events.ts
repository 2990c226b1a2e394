import type { TokenUsage } from '../../../contract/common.ts'
import type { NewEvent } from '../../events/append.ts'
import { toId } from '../../ids.ts'
import { addCosts } from '../../llm/cost.ts'
import { type PricedAnswer, unusualFinish } from './reason-events.ts'
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

/**
 * Returns the events that end an answered turn. `last` is the answer of its last step. `session.idled` is recorded
 * only when the queue is empty.
 */
export function turnEndedEvents(
  context: TurnContext,
  iterations: number,
  last: Pick<PricedAnswer, 'usage' | 'costUsd' | 'finishReason'>,
): NewEvent[] {
  const summary = {
    turn_id: toId('turn', context.turnId),
    iterations,
    usage: addUsage(context.usage, last.usage),
  }
  const duration_ms = Date.now() - (context.startedAt?.getTime() ?? Date.now())
  const cost_usd = addCosts(context.costUsd, last.costUsd)
  return [
    {
      type: 'turn.completed',
      data: { ...summary, ...unusualFinish(last), cost_usd, duration_ms, input_content: context.inputContent },
    },
    { type: 'session.idled', data: summary },
  ]
}

const addUsage = (sum: TokenUsage, more: TokenUsage): TokenUsage => ({
  input_tokens: sum.input_tokens + more.input_tokens,
  output_tokens: sum.output_tokens + more.output_tokens,
  cache_read_tokens: (sum.cache_read_tokens ?? 0) + (more.cache_read_tokens ?? 0),
  cache_creation_tokens: (sum.cache_creation_tokens ?? 0) + (more.cache_creation_tokens ?? 0),
})
