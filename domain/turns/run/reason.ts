import { storableText } from '../../../lib/postgres-text.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import { buildModelInput } from '../../conversation/model-input.ts'
import type { NewEvent } from '../../events/log/append.ts'
import { reasonStep } from '../../events/log/steps.ts'
import { withLockedSession } from '../../events/log/transaction.ts'
import { newUuid } from '../../kit/ids.ts'
import { costOf } from '../../models/llm/cost.ts'
import { ModelError, type ModelToolCall } from '../../models/llm/model.ts'
import { findProfile } from '../../models/llm/profiles/find.ts'
import { openModel } from '../../models/llm-providers/open-model.ts'
import { releaseBudgets } from '../../spending/reserve.ts'
import { type RedactedCall, redactCall } from '../../tools/call-secrets/redact-call.ts'
import { withDefaults } from '../../tools/capabilities/arguments/defaults.ts'
import { freshen, isAnyStale } from '../../tools/capabilities/freshen.ts'
import { actCompleted, planAct, readAct, readActOutcome } from '../calls.ts'
import type { Deps } from '../deps.ts'
import { startNextOf } from '../queue.ts'
import type { TurnPlace } from '../turn-place.ts'
import { beginAct, refuseCalls } from './act.ts'
import { streamAnswer } from './answer.ts'
import { appendAs, hasTooManyClaims, RightLost, Steered, waitForWorkflow, whileTurnRuns } from './attempt.ts'
import { ASKS_FOR_BUDGET, spend } from './budget.ts'
import { asSummary, compactedEvent, outputTokensFor } from './compact.ts'
import { endTurn } from './end-turn.ts'
import { goOn } from './go-on.ts'
import type { ModelCall } from './model-call.ts'
import { afterMiss, askingForOutput, hasMissed, takeOutput } from './output.ts'
import { findReachedCap, hasTooFewTokens, leftOutputTokens } from './reached-cap.ts'
import {
  answerEvents,
  answerStartedEvent,
  callFailedEvents,
  generationEvent,
  type PricedAnswer,
  reasonStartedEvent,
  retryingEvent,
} from './reason-events.ts'
import { longPause, retryDelayMs } from './retry-delay.ts'
import type { Attempt, Reasoned } from './running-attempt.ts'
import { readSystemPrompt } from './system-prompt.ts'
import { takePlace } from './turn-admission.ts'
import { isTooOld } from './turn-age.ts'
import { loadTurn, type TurnContext } from './turn-context.ts'
import { turnStartedEvents } from './turn-events.ts'

const MAX_MODEL_CALLS = 5
/** Context size of a model without a profile: every current model has it. */
const CONTEXT_TOKENS = 128_000

/**
 * Makes one model call of a turn and records its events. The first call also begins the turn. The call that answers
 * also ends it, in the transaction that records the answer. Safe to run again after any interruption, even while the
 * earlier run is still alive.
 */
export async function reason(deps: Deps, turn: TurnPlace, iteration: number, attempt: Attempt): Promise<Reasoned> {
  const step = reasonStep(iteration)
  const loaded = await loadTurn(deps, turn, step)
  if (loaded === null) return { outcome: 'ended' }
  const context = await freshTurn(deps, loaded, step, attempt)
  if (context === 'ended' || context === null) return { outcome: 'ended' }
  if (context.attempts.succeeded === true) return recorded(deps, context, iteration)
  if (context.attempts.hasAskedForBudget) return ASKS_FOR_BUDGET
  if (context.attempts.succeeded === false)
    return { outcome: 'failed', code: context.attempts.errorCode ?? 'llm_error' }
  const holder = holderOf(deps, context, attempt)
  if (holder !== undefined) return { outcome: 'claimed_elsewhere', ...holder }
  if (!(await takePlace(deps, context))) return { outcome: 'waits' }
  if (await isTooOld(deps, context)) return { outcome: 'failed', code: 'turn_too_old' }
  if (hasTooFewTokens(context)) return { outcome: 'failed', code: 'max_output_tokens' }
  const { model } = context
  if (model === undefined) return { outcome: 'failed', code: 'no_model' }
  const profile = findProfile(model.provider.type, model.name)
  // Before the attempt claims the step: a worker with another key leaves it to the next one.
  const ask = askingForOutput(openModel(deps, turn.organizationId, model), { ...context, model, profile })
  const systemPrompt = await readSystemPrompt(deps, context)
  const reasoned = await whileTurnRuns(deps, turn, attempt, async ({ signal }) => {
    const contextTokens = profile?.limits?.context ?? CONTEXT_TOKENS
    const modelInput = buildModelInput({ ...context, systemPrompt, contextTokens })
    const place = { step, iteration, execId: newUuid(), attempt, signal, startedAt: performance.now() }
    const maxOutputTokens = outputTokensFor(context)
    const call = { deps, context, model, profile, ask, systemPrompt, modelInput, maxOutputTokens, ...place }
    const budget = await spend({ call, before: () => eventsBefore(call) })
    return 'outcome' in budget ? budget : callModel({ ...call, ...budget })
  })
  return reasoned === 'ended' ? { outcome: 'ended' } : reasoned
}

/**
 * Returns the party that the attempt leaves the step to: a process, or any activity. Undefined when it takes the step.
 */
function holderOf(
  { attempts: { process } }: Deps,
  { attempts: { fence, holderLives } }: TurnContext,
  attempt: Attempt,
): { process?: number } | undefined {
  if (fence === undefined || attempt.early?.holdsStep) return undefined
  const isActivity = attempt.fence > 0
  if (holderLives && fence !== -process && (attempt.mayHandOver || !isActivity)) return { process: -fence }
  return isActivity ? undefined : {}
}

/** Returns the turn with capabilities as fresh as a short wait allows. Null when its session is gone. */
async function freshTurn(
  deps: Deps,
  context: TurnContext,
  step: string,
  attempt: Attempt,
): Promise<TurnContext | null | 'ended'> {
  if (context.attempts.succeeded !== null || !isAnyStale(context.capabilities)) return context
  const freshened = await whileTurnRuns(deps, context, attempt, ({ signal }) => freshen(context.capabilities, signal))
  // Another attempt may have taken the step meanwhile.
  return freshened === 'ended' ? freshened : loadTurn(deps, context, step)
}

/** Returns the outcome of a step that an earlier attempt completed in the record but died before reporting. */
async function recorded(deps: Deps, context: TurnContext, iteration: number): Promise<Reasoned> {
  if (context.status === 'completed') {
    await startNextOf(deps, context)
    return { outcome: 'answered' }
  }
  if (context.status === 'failed' || context.status === 'cancelled') return { outcome: 'ended' }
  const act = await readAct(deps.db, context.turnId, iteration)
  if (act === undefined) {
    if (hasMissed(context)) return afterMiss(deps, context, iteration)
    const cap = await findReachedCap(deps, context, iteration)
    if (cap === undefined && context.messages.at(-1)?.role === 'user') return goOn(context)
    // Without calls and an unread message, the answer was cut off.
    return { outcome: 'failed', code: cap?.code ?? 'max_output_tokens' }
  }
  return { outcome: 'act', model: context.model?.name ?? '', ...planAct(context.toolset, act.calls) }
}

async function callModel(call: ModelCall): Promise<Reasoned> {
  const { deps, context, iteration } = call
  const starting = append(call, [
    ...(await eventsBefore(call)),
    ...own(call, [reasonStartedEvent(call), answerStartedEvent(call)]),
  ])
  const claims = call.attempt.early?.holdsStep ? 1 : (await starting).claims
  call.attempt.early?.claimed()
  const { failures } = context.attempts
  if (hasTooManyClaims(claims, failures)) return { outcome: 'failed', code: 'internal_error' }
  deps.metrics?.attempted(claims <= 1 ? 'first' : claims > failures + 1 ? 'taken_over' : 'retry')
  try {
    const streamed = await deps.tracing.modelCall(tracedCall(call), () => readAnswer(call, starting))
    const started = await starting
    const given = context.compacts ? asSummary(streamed) : streamed
    const answer = { ...given, costUsd: costOf(call.profile, streamed.usage) }
    const rest = await untilItMayEnd(call, answer.rest)
    const isCutSummary = context.compacts && answer.finishReason === 'length'
    const isCut = isCutSummary || (answer.toolCalls.length === 0 && isCutByCap(call, answer))
    const output = isCut || answer.toolCalls.length > 0 ? undefined : await takeOutput(call, answer)
    const answered = own(call, [...rest, generationEvent(call, answer), ...answerEvents(call, answer, output?.problem)])
    if (answer.toolCalls.length > 0) return await recordCalls(call, answered, answer)
    if (isCut) {
      await append(call, answered)
      return { outcome: 'failed', code: 'max_output_tokens' }
    }
    if (output?.problem !== undefined) {
      await append(call, answered)
      return await afterMiss(deps, context, iteration, { outputTokens: answer.usage.output_tokens })
    }
    const begun = { startedAt: context.startedAt ?? started.at, output: output?.value }
    const compacted = context.compacts ? own(call, [compactedEvent(context, answered)]) : []
    return await endTurn(call, [...answered, ...compacted], answer, begun)
  } catch (error) {
    if (!(error instanceof ModelError)) throw error
    await starting
    await waitForWorkflow(call.attempt, call.signal)
    return recordFailure(call, error)
  }
}

/** Streams the answer. The secrets of its calls are taken out before anybody else has it, also the trace. */
async function readAnswer(call: ModelCall, starting: Promise<unknown>) {
  const streamed = await streamAnswer(call, starting, async (events) => {
    await append(call, own(call, events))
  })
  return { ...streamed, toolCalls: streamed.toolCalls.map((toolCall) => withoutSecrets(call, fillIn(call, toolCall))) }
}

const tracedCall = ({ context: turn, model, iteration, systemPrompt, modelInput: { messages } }: ModelCall) => ({
  ...{ turn, iteration, systemPrompt, messages },
  ...{ provider: model.provider.type, model: model.name },
})

/** Waits until the step may end, and returns the events to record then. Text is recorded at once. */
async function untilItMayEnd(call: ModelCall, rest: NewEvent[]): Promise<NewEvent[]> {
  if (call.attempt.early?.isKnown !== false) return rest
  if (rest.length > 0) await append(call, own(call, rest))
  await waitForWorkflow(call.attempt, call.signal)
  return []
}

/**
 * Fills in the defaults of an MCP server's tool before the call is recorded, so that its approver sees all arguments.
 */
function fillIn({ context }: ModelCall, toolCall: ModelToolCall): ModelToolCall {
  const tool = context.toolset.get(toolCall.name)?.tool
  if (tool?.schemaOwner !== 'external' || toolCall.argumentsError !== undefined) return toolCall
  return { ...toolCall, arguments: withDefaults(tool.parameters, toolCall.arguments) }
}

/** Takes the secrets out of a call. A client's tool has none; a model may call a tool that its agent no longer has. */
function withoutSecrets({ deps, context }: ModelCall, toolCall: ModelToolCall): RedactedCall {
  const offered = context.toolset.get(toolCall.name)
  if (offered !== undefined) return offered.tool === undefined ? toolCall : redactCall(offered.tool, toolCall)
  const tools = deps.capabilities.flatMap(({ tools }) => tools)
  return redactCall(
    tools.find(({ name }) => name === toolCall.name),
    toolCall,
  )
}

/** Whether the turn's cap, rather than the model's own limit, has cut the answer off. */
const isCutByCap = ({ context, profile, maxOutputTokens }: ModelCall, { finishReason }: PricedAnswer): boolean =>
  finishReason === 'length' &&
  // A budget may leave the call less than the cap does.
  maxOutputTokens === leftOutputTokens(context) &&
  (maxOutputTokens ?? Number.POSITIVE_INFINITY) <= (profile?.limits?.output ?? Number.MAX_VALUE)

async function recordCalls(
  call: ModelCall,
  answered: NewEvent[],
  { toolCalls, usage }: PricedAnswer,
): Promise<Reasoned> {
  const { deps, context, iteration } = call
  const made = { toolCalls: toolCalls.length, outputTokens: usage.output_tokens }
  const cap = await findReachedCap(deps, context, iteration, made)
  if (cap !== undefined) {
    await append(call, [...answered, ...refuseCalls(context, iteration, toolCalls, cap.sentence)])
    return { outcome: 'failed', code: cap.code }
  }
  const { events, plan } = await beginAct(deps, context, iteration, toolCalls, call.signal)
  await append(call, [...answered, ...events])
  return { outcome: 'act', model: call.model.name, ...plan }
}

/** Returns the events that come before the step's own. */
const eventsBefore = async (call: ModelCall): Promise<NewEvent[]> =>
  call.iteration === 1 ? turnStartedEvents(call.context) : previousAct(call)

/** Returns `act.completed` for the calls of the step before, which end where this step begins. Empty without calls. */
async function previousAct({ deps, context, iteration }: ModelCall): Promise<NewEvent[]> {
  const act = await readActOutcome(deps.db, context.turnId, iteration - 1)
  return act === undefined ? [] : [actCompleted(act)]
}

/** Marks events as the step's own, as opposed to the turn's. */
const own = ({ step, execId }: ModelCall, events: NewEvent[]): NewEvent[] =>
  events.map((event) => ({ step, execId, ...event }))

const append = ({ deps, context, step, attempt }: ModelCall, events: NewEvent[]) =>
  appendAs(deps, context, step, attempt, events)

/**
 * Counts the failure in the record, where the next attempt finds it, together with the event that reports it. The last
 * failure is shown to the user.
 */
async function recordFailure(call: ModelCall, error: ModelError): Promise<Reasoned> {
  const failures = call.context.attempts.failures + 1
  const sentence = storableText(error.message) + longPause(error.retryAfterMs)
  const afterMs = error.retryable && failures < MAX_MODEL_CALLS ? retryDelayMs(failures, error.retryAfterMs) : undefined
  const events =
    afterMs === undefined
      ? callFailedEvents(call, sentence)
      : [retryingEvent(call, { attempt: failures, error: sentence, retry_after_ms: afterMs })]
  const state = { failures, waitedMs: { increment: afterMs ?? 0 }, error: sentence, errorCode: error.code ?? null }
  await countFailure(call, own(call, events), state, error.hasAnswered)
  if (afterMs !== undefined) {
    call.deps.metrics?.retried(call.model.provider.type)
    return { outcome: 'retry', failures, afterMs }
  }
  return { outcome: 'failed', code: error.code ?? 'llm_error' }
}

/** Records events and the state of the step in one transaction. Throws `RightLost` when the attempt may not write. */
async function countFailure(
  { deps, context, step, attempt }: ModelCall,
  events: NewEvent[],
  state: Prisma.TurnStepUpdateInput,
  hasAnswered: boolean,
): Promise<void> {
  const appended = await withLockedSession(deps, context, async (session) => {
    const appended = await session.append(context.turnId, events, { step, fence: attempt.fence })
    if (appended.outcome === 'appended') {
      await session.db.turnStep.update({ where: { turnId_step: { turnId: context.turnId, step } }, data: state })
      // A provider that refuses a call does not charge for it.
      if (context.hasBudgets && !hasAnswered) await releaseBudgets(session.db, context.turnId, step)
    }
    return appended.outcome
  })
  if (appended === 'steered') throw new Steered()
  if (appended !== 'appended') throw new RightLost(appended ?? 'session_gone')
}
