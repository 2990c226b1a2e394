import { hash } from 'node:crypto'
import type { EventData } from '../../../contract/events.ts'
import { canonicalJson } from '../../../lib/canonical-json.ts'
import { elapsedMs } from '../../../lib/elapsed-ms.ts'
import { truncate } from '../../../lib/truncate.ts'
import { withoutImages } from '../../conversation/read.ts'
import type { NewEvent } from '../../events/log/append.ts'
import { attemptStep } from '../../events/log/steps.ts'
import { newUuid, toId } from '../../kit/ids.ts'
import { withSecrets } from '../../tools/call-secrets/encrypt.ts'
import type { RedactedCall } from '../../tools/call-secrets/redact-call.ts'
import { presentCall } from '../calls.ts'
import type { Answer } from './answer.ts'
import type { ModelCall } from './model-call.ts'
import type { TurnContext } from './turn-context.ts'

/** An answer without the secrets of its calls. */
type RedactedAnswer = Omit<Answer, 'toolCalls'> & { toolCalls: RedactedCall[] }

/** An answer with its cost in USD, null when the price is unknown. */
export type PricedAnswer = RedactedAnswer & { costUsd: string | null }

const modelMetadata = ({ model }: ModelCall) => ({
  model: model.name,
  model_id: model.id,
  provider_id: model.provider.id,
})

export const reasonStartedEvent = (call: ModelCall): NewEvent => ({
  type: 'reason.started',
  data: {
    harness_id: toId('harness', call.context.harnessId),
    agent_id: call.context.agentId && toId('agent', call.context.agentId),
    metadata: modelMetadata(call),
  },
})

export const answerStartedEvent = ({ context, model }: ModelCall): NewEvent => ({
  type: 'output.message.started',
  data: { turn_id: toId('turn', context.turnId), model: model.name },
})

/** Returns the report of a failed attempt. It has a step of its own, so each attempt is recorded once. */
export const retryingEvent = ({ iteration }: ModelCall, data: EventData<'reason.retrying'>): NewEvent => ({
  type: 'reason.retrying',
  step: attemptStep(iteration, data.attempt),
  data,
})

/** Returns the field that says which of the messages that joined the turn a model call has read. */
export const readSteers = ({ steeredThrough }: Pick<TurnContext, 'steeredThrough'>) =>
  steeredThrough === 0 ? {} : { steered_through: steeredThrough }

export function generationEvent(call: ModelCall, answer: PricedAnswer | { error: string }): NewEvent {
  const { context, model, modelInput } = call
  const success = !('error' in answer)
  const { failures, waitedMs } = context.attempts
  return {
    type: 'llm.generation',
    parts: { messages: modelInput.messages.map(withoutImages) },
    data: {
      ...(modelInput.thresholds === undefined ? {} : { thresholds: modelInput.thresholds }),
      ...readSteers(context),
      tools: [...context.toolset.values()].map(({ spec, displayName }) => ({
        name: spec.name,
        description: spec.description,
        display_name: displayName,
      })),
      output: success ? { text: answer.text, tool_calls: answer.toolCalls.map(presentCall) } : {},
      metadata: {
        model: model.name,
        provider: model.provider.type,
        ...parametersOf(call),
        success,
        duration_ms: elapsedMs(call.startedAt),
        ...(failures > 0 ? { retry: { attempts: failures, total_wait_ms: waitedMs } } : {}),
        ...(modelInput.compaction === undefined ? {} : { compaction: modelInput.compaction }),
        ...(success ? outcome(answer) : { error: answer.error }),
      },
    },
  }
}

/** Returns what a model was given besides messages and tools. Prompt and schema may be long, and are kept as hashes. */
function parametersOf({
  context: { reasoningEffort, outputSchema },
  profile,
  maxOutputTokens,
  systemPrompt,
}: ModelCall) {
  const limit = Math.min(
    maxOutputTokens ?? Number.POSITIVE_INFINITY,
    profile?.limits?.output ?? Number.POSITIVE_INFINITY,
  )
  return {
    ...(reasoningEffort === undefined ? {} : { reasoning_effort: reasoningEffort }),
    ...(Number.isFinite(limit) ? { max_output_tokens: limit } : {}),
    ...(outputSchema === undefined ? {} : { output_schema_sha256: hash('sha256', canonicalJson(outputSchema)) }),
    system_prompt_sha256: hash('sha256', systemPrompt),
  }
}

/** Returns the events of a model call that has no answer. */
export const callFailedEvents = (call: ModelCall, error: string): NewEvent[] => [
  generationEvent(call, { error }),
  {
    type: 'reason.completed',
    data: {
      success: false,
      has_tool_calls: false,
      tool_call_count: 0,
      error,
      duration_ms: elapsedMs(call.startedAt),
    },
  },
]

/** Returns the reason for which an answer ended, in the fields of its message and its turn, unless it ended by itself. */
export const unusualFinish = ({ finishReason }: Pick<Answer, 'finishReason'>): { finish_reason?: string } =>
  ['stop', 'tool_calls'].includes(finishReason) ? {} : { finish_reason: finishReason }

const outcome = (answer: PricedAnswer) => ({
  time_to_first_token_ms: answer.firstPartMs,
  finish_reasons: [answer.finishReason],
  response_id: answer.responseId ?? null,
  usage: answer.usage,
  cost_usd: answer.costUsd,
})

/** `problem` is why the answer cannot be the turn's output. */
export function answerEvents(call: ModelCall, answer: RedactedAnswer, problem?: string): NewEvent[] {
  const { deps, context, model, iteration } = call
  const { sessionId, turnId } = context
  const message = {
    id: toId('message', newUuid()),
    role: 'agent',
    content: [
      ...(answer.text === '' ? [] : [{ type: 'text', text: answer.text }]),
      ...answer.toolCalls.map((toolCall) => ({ type: 'tool_call', ...presentCall(toolCall) })),
    ],
    ...(answer.thinking === '' ? {} : { thinking: answer.thinking, thinking_signature: answer.thinkingSignature }),
    metadata: {
      model: model.name,
      ...(context.reasoningEffort === undefined ? {} : { reasoning_effort: context.reasoningEffort }),
      ...unusualFinish(answer),
      ...(problem === undefined ? {} : { output_error: problem }),
      ...(context.compacts && answer.finishReason !== 'length' ? { summary: true } : {}),
    },
  }
  const completed: NewEvent = {
    type: 'output.message.completed',
    data: {
      ...{ message, metadata: modelMetadata(call), usage: answer.usage },
      ...(answer.providerData === undefined ? {} : { provider_data: answer.providerData }),
      ...readSteers(context),
    },
  }
  return [
    withSecrets(deps, { sessionId, turnId, iteration, kind: 'arguments' }, completed, answer.toolCalls),
    {
      type: 'reason.completed',
      data: {
        success: true,
        has_tool_calls: answer.toolCalls.length > 0,
        tool_call_count: answer.toolCalls.length,
        text_preview: truncate(answer.text),
        duration_ms: elapsedMs(call.startedAt),
        usage: answer.usage,
      },
    },
  ]
}
