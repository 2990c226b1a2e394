import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  ContinueAsNew,
  continueAsNew,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  TimeoutFailure,
  workflowInfo,
} from '@temporalio/workflow'
import type { TurnActivities } from '../worker/activities.ts'
import { createClientAnswers } from './client-answers.ts'
import type { ReasonOutcome, ToolRun, TurnErrorCode, TurnInput, TurnOutcome } from './messages.ts'
import { inParallel } from './parallel.ts'

/** Single appends to the record; they are tried until the record is there again. */
const { failTurn, failTool, cancelTurn, requestCalls, settleCalls } = proxyLocalActivities<TurnActivities>({
  startToCloseTimeout: '20 seconds',
  retry: { initialInterval: '100 milliseconds', backoffCoefficient: 2, maximumInterval: '10 seconds' },
  // While the record is away they wait on timers: a workflow task that is kept alive for them fills the history.
  localRetryThreshold: '2 seconds',
})

/**
 * A dead worker is noticed by its missing heartbeat. The provider's and the tools' own failures are counted by the
 * steps; what is tried again here beyond that is the service's own trouble.
 */
const { reason, runTool } = proxyActivities<TurnActivities>({
  startToCloseTimeout: '30 minutes',
  scheduleToCloseTimeout: '24 hours',
  heartbeatTimeout: '4 seconds',
  retry: {
    initialInterval: '200 milliseconds',
    backoffCoefficient: 2,
    maximumInterval: '15 seconds',
  },
})

/** Beyond a tool's own time, for the record to be written. */
const TOOL_GRACE_MS = 30_000
const MAX_PARALLEL_TOOLS = 16
/** Long before Temporal's own limit, so that a history stays quick to load and to read. */
const MAX_HISTORY_EVENTS = 2000

/**
 * One turn of a session: the workflow decides, its activities do, and only ids and outcomes pass between them.
 * A plain turn is one activity: the reason step begins the turn, and the one that answers ends it. `iteration` is
 * where to go on when a long turn continues in a new run. Ends as cancelled when the turn was ended from outside.
 */
export async function turn(input: TurnInput, iteration = 1): Promise<TurnOutcome> {
  const outcome = await runTurn(input, iteration)
  if (outcome === 'ended') throw new CancelledFailure('the turn was cancelled, or its session deleted')
  return outcome
}

/** Whatever happens to the workflow, no turn may stay without an end. */
async function runTurn(input: TurnInput, iteration: number): Promise<TurnOutcome | 'ended'> {
  const progress = { iteration }
  try {
    return await takeSteps(input, progress)
  } catch (error) {
    if (error instanceof ContinueAsNew) throw error
    if (isCancellation(error)) {
      await CancellationScope.nonCancellable(() => cancelTurn(input))
      throw error
    }
    await CancellationScope.nonCancellable(() => failTurn(input, progress.iteration, errorCode(error)))
    return 'failed'
  }
}

async function takeSteps(input: TurnInput, progress: { iteration: number }): Promise<'completed' | 'ended'> {
  const steps = createSteps(input)
  for (; ; progress.iteration++) {
    const reasoned = await steps.reason(progress.iteration)
    if (reasoned.outcome === 'answered') return 'completed'
    if (reasoned.outcome === 'ended' || !(await steps.act(progress.iteration, reasoned))) return 'ended'
    const { continueAsNewSuggested, historyLength } = workflowInfo()
    if (continueAsNewSuggested || historyLength > MAX_HISTORY_EVENTS) {
      await continueAsNew<typeof turn>(input, progress.iteration + 1)
    }
  }
}

type Act = Extract<ReasonOutcome, { outcome: 'act' }>

function createSteps(input: TurnInput) {
  const answers = createClientAnswers()
  let model = ''

  const reasonStep = async (iteration: number): Promise<ReasonOutcome> => {
    const summary = ['reason', model, `iteration ${iteration}`].filter(Boolean).join(' · ')
    setCurrentDetails(summary)
    return reason.executeWithOptions({ summary }, [input, iteration])
  }

  const run = (iteration: number, runs: ToolRun[]): Promise<boolean> => {
    setCurrentDetails(`iteration ${iteration} · running ${runs.map(({ tool }) => tool).join(', ')}`)
    return inParallel(runs, MAX_PARALLEL_TOOLS, async ({ position, tool, timeoutMs }) => {
      const options = { summary: `tool · ${tool}`, startToCloseTimeout: timeoutMs + TOOL_GRACE_MS }
      try {
        return (await runTool.executeWithOptions(options, [input, iteration, position])).outcome === 'done'
      } catch (error) {
        if (isCancellation(error)) throw error
        // A tool's failure never fails the turn: the model is told.
        await failTool(input, iteration, position)
        return true
      }
    })
  }

  /** The calls that the client was asked for; undefined when the turn is over. */
  const approvedRuns = async (iteration: number): Promise<ToolRun[] | undefined> => {
    let settled = await requestCalls(input, iteration)
    const until = Date.now() + (settled.outcome === 'waiting' ? settled.forMs : 0)
    while (settled.outcome === 'waiting') {
      setCurrentDetails(`iteration ${iteration} · waiting for the client until ${new Date(until).toISOString()}`)
      const isOverdue = !(await answers.next(until - Date.now()))
      settled = await settleCalls(input, iteration, isOverdue)
    }
    return settled.outcome === 'ended' ? undefined : settled.runs
  }

  return {
    reason: reasonStep,
    /** Sees to it that all calls of a step get their results; false when the turn is over. */
    act: async (iteration: number, { model: used, runs, asks }: Act): Promise<boolean> => {
      model = used
      if (runs.length > 0 && !(await run(iteration, runs))) return false
      if (!asks) return true
      const approved = await approvedRuns(iteration)
      if (approved === undefined) return false
      return approved.length === 0 || run(iteration, approved)
    },
  }
}

const KNOWN_CODES: TurnErrorCode[] = ['llm_error', 'no_model', 'max_iterations', 'timeout']

function errorCode(error: unknown): TurnErrorCode {
  const cause = error instanceof ActivityFailure ? error.cause : error
  if (cause instanceof TimeoutFailure) return 'timeout'
  const type = cause instanceof ApplicationFailure ? cause.type : undefined
  return KNOWN_CODES.find((code) => code === type) ?? 'internal_error'
}
