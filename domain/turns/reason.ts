import type { TurnErrorCode, TurnInput } from '../../workflows/messages.ts'
import type { Deps } from '../deps.ts'
import { type Appended, appendEvents, type NewEvent } from '../events/append.ts'
import { withoutImages } from '../events/read.ts'
import { newUuid, toId, toUuid } from '../ids.ts'
import { ModelError } from '../llm/model.ts'
import { cut } from '../preview.ts'
import { type Answer, storable, streamAnswer } from './answer.ts'
import { beginning, ending, startNext, startNextOf } from './lifecycle.ts'
import { loadTurn, type TurnContext } from './load.ts'
import { retryDelayMs } from './retry-delay.ts'

export type Attempt = {
  /** Orders the attempts of a step: the server time at which Temporal scheduled this one. */
  fence: number
  signal: AbortSignal
}

export type Reasoned =
  | { outcome: 'answered' }
  /** The turn is over; nothing more may be written. */
  | { outcome: 'ended' }
  | { outcome: 'failed'; code: TurnErrorCode }
  | { outcome: 'retry'; afterMs: number }

const MAX_MODEL_CALLS = 5

/**
 * One model call of a turn, with its events; the first also begins the turn, and the one that answers ends it, in the
 * transaction that records the answer. May be run again after any interruption, also while the old run lives.
 */
export async function reason(deps: Deps, turn: TurnInput, iteration: number, attempt: Attempt): Promise<Reasoned> {
  const step = `reason:${iteration}`
  const context = await loadTurn(deps, turn, step)
  if (context === null) return { outcome: 'ended' }
  // An earlier attempt recorded the end of the step but died before it could report.
  if (context.attempts.succeeded === true) {
    await startNextOf(deps, turn)
    return { outcome: 'answered' }
  }
  if (context.attempts.succeeded === false) return { outcome: 'failed', code: 'llm_error' }
  return callModel({ deps, context, step, iteration, execId: newUuid(), attempt, startedAt: Date.now() })
}

/** One attempt at one step. */
export type ModelCall = {
  deps: Deps
  context: TurnContext
  step: string
  iteration: number
  execId: string
  attempt: Attempt
  startedAt: number
}

async function callModel(call: ModelCall): Promise<Reasoned> {
  const { deps, context } = call
  const claimed = await append(call, [...beginning(context), ...own(call, [started(call), answerStarted(call)])])
  if (claimed.outcome !== 'appended') return lost(claimed.outcome)
  try {
    const answer = await streamAnswer(call, async (events) => {
      const { outcome } = await append(call, own(call, events))
      if (outcome !== 'appended') throw new RightLost(outcome)
    })
    const recorded = await append(call, [
      ...own(call, [...answer.rest, generation(call, answer), ...completed(call, answer)]),
      ...ending({ ...context, startedAt: context.startedAt ?? claimed.at }, call.iteration, answer.usage),
    ])
    if (recorded.outcome !== 'appended') return lost(recorded.outcome)
    startNext(deps, context, recorded.nextTurnId)
    return { outcome: 'answered' }
  } catch (error) {
    if (error instanceof RightLost) return lost(error.outcome)
    if (error instanceof ModelError) return recordFailure(call, error)
    throw error
  }
}

type LostRight = Exclude<Appended['outcome'], 'appended'>

/** The attempt lost its right to write in mid-stream. */
class RightLost extends Error {
  readonly outcome: LostRight
  constructor(outcome: LostRight) {
    super(outcome)
    this.outcome = outcome
  }
}

/**
 * Temporal discards what a superseded attempt says. Should it not, because a clock went back and this is the newest
 * attempt after all, then it has to be tried again: only a turn that is over may be reported as such.
 */
function lost(outcome: LostRight): Reasoned {
  if (outcome === 'fenced') throw new Error('a newer attempt has taken the step')
  return { outcome: 'ended' }
}

/** The step's own events, as against those of the whole turn. */
const own = ({ step, execId }: ModelCall, events: NewEvent[]): NewEvent[] =>
  events.map((event) => ({ ...event, step, execId }))

function append({ deps, context, step, attempt }: ModelCall, events: NewEvent[]) {
  const { sessionId, turnId } = context
  return appendEvents(deps, { sessionId, turnId, attempt: { step, fence: attempt.fence } }, events)
}

const modelMetadata = ({ model }: TurnContext) => ({
  model: model.name,
  model_id: toUuid(model.id),
  provider_id: toUuid(model.providerId),
})

const started = ({ context }: ModelCall): NewEvent => ({
  type: 'reason.started',
  data: {
    harness_id: toId('harness', context.harnessId),
    agent_id: context.agentId && toId('agent', context.agentId),
    metadata: modelMetadata(context),
  },
})

const answerStarted = ({ context }: ModelCall): NewEvent => ({
  type: 'output.message.started',
  data: { turn_id: toId('turn', context.turnId), model: context.model.name },
})

function generation(call: ModelCall, answer: Answer | { error: string }): NewEvent {
  const { context } = call
  const success = !('error' in answer)
  const { failures, waitedMs } = context.attempts
  const retried = success ? failures : failures + 1
  return {
    type: 'llm.generation',
    parts: { messages: context.messages.map(withoutImages) },
    data: {
      tools: [],
      output: success ? { text: answer.text, tool_calls: [] } : {},
      metadata: {
        model: context.model.name,
        provider: context.model.providerType,
        success,
        duration_ms: Date.now() - call.startedAt,
        ...(retried > 0 ? { retry: { attempts: failures, total_wait_ms: waitedMs } } : {}),
        ...(success
          ? {
              time_to_first_token_ms: answer.firstPartMs,
              finish_reasons: [answer.finishReason],
              response_id: answer.responseId ?? null,
              usage: answer.usage,
            }
          : { error: answer.error }),
      },
    },
  }
}

function completed(call: ModelCall, answer: Answer): NewEvent[] {
  const { context } = call
  const message = {
    id: toId('message', newUuid()),
    role: 'agent',
    content: answer.text === '' ? [] : [{ type: 'text', text: answer.text }],
    ...(answer.thinking === '' ? {} : { thinking: answer.thinking, thinking_signature: answer.thinkingSignature }),
    metadata: {
      model: context.model.name,
      ...(context.reasoningEffort === undefined ? {} : { reasoning_effort: context.reasoningEffort }),
    },
  }
  return [
    { type: 'output.message.completed', data: { message, metadata: modelMetadata(context), usage: answer.usage } },
    {
      type: 'reason.completed',
      data: {
        success: true,
        has_tool_calls: false,
        tool_call_count: 0,
        text_preview: cut(answer.text),
        duration_ms: Date.now() - call.startedAt,
        usage: answer.usage,
      },
    },
  ]
}

/** Counts the failure in the record, where the next attempt finds it; the last one is told to the user. */
async function recordFailure(call: ModelCall, error: ModelError): Promise<Reasoned> {
  const { deps, context, step, attempt } = call
  const failures = context.attempts.failures + 1
  const sentence = storable(error.message)
  const isLast = !error.retryable || failures >= MAX_MODEL_CALLS
  const afterMs = isLast ? 0 : retryDelayMs(failures, error.retryAfterMs)
  await deps.db.turnStep.updateMany({
    where: { turnId: context.turnId, step, fence: attempt.fence },
    data: { failures, waitedMs: { increment: afterMs }, error: sentence },
  })
  if (!isLast) return { outcome: 'retry', afterMs }
  const failed = { success: false, has_tool_calls: false, tool_call_count: 0, error: sentence }
  const duration_ms = Date.now() - call.startedAt
  const events: NewEvent[] = [
    generation(call, { error: sentence }),
    { type: 'reason.completed', data: { ...failed, duration_ms } },
  ]
  const recorded = await append(call, own(call, events))
  return recorded.outcome === 'appended' ? { outcome: 'failed', code: 'llm_error' } : lost(recorded.outcome)
}
