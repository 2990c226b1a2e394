import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  ContinueAsNew,
  continueAsNew,
  isCancellation,
  patched,
  setCurrentDetails,
  sleep,
  TimeoutFailure,
  workflowInfo,
} from '@temporalio/workflow'
import { act } from './act.ts'
import { begin, cancelTurn, failTurn, RESUME_IN_PROCESS, reason } from './activities.ts'
import {
  BEGINS_STEPS,
  type BeginOutcome,
  type ReasonOutcome,
  type TurnErrorCode,
  type TurnInput,
  type TurnOutcome,
  type TurnReport,
  type UnfinishedStep,
} from './messages.ts'
import { createResumeSignal, type ResumeSignal } from './resume-signal.ts'

/** Limit on a run's history. Far below Temporal's own, so that a history stays quick to load and read. */
const MAX_HISTORY_EVENTS = 2000
/** Patch id. Without this patch a failed turn completes its workflow, as in older histories. */
const FAILED_TURN_FAILS = 'failed-turn-fails'
/** Patch id. Without this patch a workflow that finds its turn ended does not wait for the request to cancel it. */
const ENDED_TURN_WAITS = 'ended-turn-waits'
/**
 * Time for which the request to cancel a workflow may still be on its way after the turn was cancelled in the record: an
 * owner's requests are sent one after the other.
 */
const CANCEL_REQUEST_MS = 10 * 60_000

/**
 * Number of times that a step is sought in the living process where it has begun. Each takes a second, unless Postgres is
 * away.
 */
const MAX_RESUMES = 60
/** Time after which a step that waits for a place begins without a notice of one. */
const PLACE_MS = 10 * 60_000

/**
 * Runs one turn of a session. The workflow makes decisions and its activities do the work; only ids and outcomes
 * pass between them. A plain turn is one reason step, which begins the turn and ends it.
 * `iteration` is the step at which a long turn continues in a new run. A failed turn fails its workflow, so that
 * Temporal can count and show it. The workflow of a turn that was ended from outside ends as cancelled.
 */
export async function turn(input: TurnInput, iteration = 1): Promise<TurnOutcome | TurnReport> {
  const outcome = await runTurn(input, iteration)
  if (outcome === 'ended') {
    // A workflow that nobody asked to cancel would be shown as failed.
    const isAsked = CancellationScope.current().consideredCancelled
    if (!isAsked && patched(ENDED_TURN_WAITS)) await sleep(CANCEL_REQUEST_MS)
    throw new CancelledFailure('the turn was cancelled, or its session deleted')
  }
  return outcome
}

/** Runs the turn's steps, and records the turn's end whatever happens: no turn may stay without one. */
async function runTurn(input: TurnInput, iteration: number): Promise<TurnOutcome | TurnReport | 'ended'> {
  const progress = { iteration }
  try {
    return await takeSteps(input, progress)
  } catch (error) {
    if (error instanceof ContinueAsNew) throw error
    if (isCancellation(error)) {
      await CancellationScope.nonCancellable(() => cancelTurn(input))
      throw error
    }
    const code = errorCode(error)
    const outcome = await CancellationScope.nonCancellable(() => failTurn(input, progress.iteration, code))
    // A worker of an older version returns no outcome.
    if (!patched(FAILED_TURN_FAILS) || outcome === undefined) return 'failed'
    if (outcome !== 'failed') return outcome
    throw ApplicationFailure.nonRetryable("the turn failed; its session's events say why", code)
  }
}

/** Alternates between model calls and the tool calls that they request, until the model answers. */
async function takeSteps(
  input: TurnInput,
  progress: { iteration: number },
): Promise<TurnReport | 'completed' | 'ended'> {
  const answers = createResumeSignal()
  for (let model: string | undefined; ; progress.iteration++) {
    const { iteration } = progress
    const summary = ['reason', ...(model === undefined ? [] : [model]), `iteration ${iteration}`].join(' · ')
    const reasoned = await askModel(input, iteration, summary, answers)
    if (reasoned.outcome === 'answered') return showReport(reasoned.report)
    if (reasoned.outcome === 'ended' || !(await act(input, iteration, reasoned, answers))) return 'ended'
    model = reasoned.model
    const { continueAsNewSuggested, historyLength } = workflowInfo()
    if (continueAsNewSuggested || historyLength > MAX_HISTORY_EVENTS) {
      await continueAsNew<typeof turn>(input, iteration + 1)
    }
  }
}

/** Shows what a turn did, as its workflow's result too. Workers of an earlier release do not report it. */
function showReport(report: TurnReport | undefined): TurnReport | 'completed' {
  if (report === undefined) return 'completed'
  const { outcome, model, iterations, inputTokens, outputTokens, durationMs, timeline } = report
  const took = `iterations ${iterations} · tokens ${inputTokens} in, ${outputTokens} out · ${durationMs} ms`
  setCurrentDetails([outcome, model, took, timeline].join(' · '))
  return report
}

/** Asks the model until it answers or has failed too often. */
async function askModel(
  input: TurnInput,
  iteration: number,
  summary: string,
  resumeSignal: ResumeSignal,
): Promise<Exclude<ReasonOutcome, { outcome: 'retry' }>> {
  for (;;) {
    setCurrentDetails(summary)
    const reasoned = await takeStep(input, iteration, summary, resumeSignal)
    if (reasoned.outcome !== 'retry') return reasoned
    const at = new Date(Date.now() + reasoned.afterMs).toISOString()
    setCurrentDetails(`${summary} · attempt ${reasoned.failures} failed; the model is asked again at ${at}`)
    await sleep(reasoned.afterMs)
  }
}

/**
 * Takes a reason step: begins it as a part of the workflow task, which is all that a short one needs, and goes on with
 * the activity. That has to reach the process in which the step has begun, or any other one if that process has died.
 */
async function takeStep(
  input: TurnInput,
  iteration: number,
  summary: string,
  resumeSignal: ResumeSignal,
): Promise<ReasonOutcome> {
  const step = [input, iteration, 'in_workflow'] as const
  let taken: ReasonOutcome | UnfinishedStep
  if (workflowInfo().currentBuildId?.startsWith(BEGINS_STEPS))
    taken = await beginStep(input, iteration, summary, resumeSignal)
  else taken = await reason.executeWithOptions({ summary }, [...step])
  for (let resumes = 1; taken.outcome === 'unfinished'; resumes++) {
    const resumed = await resumeInProcess(taken, [...step], summary)
    taken = resumed ?? (await reason.executeWithOptions({ summary }, [...step, resumes < MAX_RESUMES]))
  }
  return taken
}

/** Goes on with a step in the process where it has begun. Undefined when that did not come for it, or did not end it. */
async function resumeInProcess(
  { taskQueue }: UnfinishedStep,
  step: Parameters<typeof reason>,
  summary: string,
): Promise<ReasonOutcome | undefined> {
  if (taskQueue === undefined) return undefined
  try {
    const reasoned = await reason.executeWithOptions({ summary, taskQueue, ...RESUME_IN_PROCESS }, step)
    return reasoned.outcome === 'unfinished' ? undefined : reasoned
  } catch (error) {
    if (isCancellation(error) || isFinal(error)) throw error
    return undefined
  }
}

/** Reasons for which a step waits for a place. */
const CROWDED = 'many turns of the same owner run'
const CAPPED = 'as many turns of the agent or the organization run as may'

type BegunStep = Exclude<BeginOutcome, { outcome: 'waits' }>

/** Begins a step, when there is a place for it. */
async function beginStep(
  input: TurnInput,
  iteration: number,
  summary: string,
  resumeSignal: ResumeSignal,
): Promise<BegunStep> {
  for (let isNotified = false; ; ) {
    const begun = await tryToBegin(input, iteration, summary)
    if (begun.outcome !== 'waits') return begun
    // It was begun where there was a place, and ended before it had claimed the step. Its activity finds out why.
    if (isNotified && !begun.isCapped) return { outcome: 'unfinished' }
    setCurrentDetails(`${summary} · waits for a place: ${begun.isCapped ? CAPPED : CROWDED}`)
    isNotified = await resumeSignal.next(PLACE_MS)
    setCurrentDetails(summary)
  }
}

async function tryToBegin(input: TurnInput, iteration: number, summary: string): Promise<BeginOutcome> {
  try {
    return await begin.executeWithOptions({ summary }, [input, iteration])
  } catch (error) {
    if (isCancellation(error)) throw error
    return { outcome: 'unfinished' }
  }
}

/** Tells whether an activity has failed for good, as opposed to one whose process died or could not do it. */
const isFinal = (error: unknown): boolean =>
  error instanceof ActivityFailure && error.cause instanceof ApplicationFailure && error.cause.nonRetryable === true

const KNOWN_CODES: TurnErrorCode[] = [
  'llm_error',
  'no_model',
  'max_iterations',
  'max_tool_calls',
  'max_output_tokens',
  'turn_too_old',
  'answer_too_long',
  'too_many_tool_calls',
  'budget_exceeded',
  'price_unknown',
  'output_invalid',
  'timeout',
]

function errorCode(error: unknown): TurnErrorCode {
  const cause = error instanceof ActivityFailure ? error.cause : error
  if (cause instanceof TimeoutFailure) return 'timeout'
  const type = cause instanceof ApplicationFailure ? cause.type : undefined
  return KNOWN_CODES.find((code) => code === type) ?? 'internal_error'
}
