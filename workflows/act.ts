import { isCancellation, setCurrentDetails, sleep } from '@temporalio/workflow'
import { failTool, requestCalls, runTool, settleCalls } from './activities.ts'
import { runChild } from './child.ts'
import type { CallAbility, PlannedTool, ReasonOutcome, TurnInput } from './messages.ts'
import { inParallel } from './parallel.ts'
import type { ResumeSignal } from './resume-signal.ts'
import { runTemporalCall } from './temporal-tool.ts'

/** Time after a tool's own limit for recording its result. */
const TOOL_GRACE_MS = 30_000
const MAX_PARALLEL_TOOLS = 16
/** Time until the end of an agent's turn is in the record although its workflow was terminated. */
const RECONCILED_MS = 10_000

type Act = Pick<Extract<ReasonOutcome, { outcome: 'act' }>, 'runs' | 'asks'>

/**
 * Gets the results of all calls of a step: first of the service's tools, then of the client's, including the questions
 * of the service's tools. False if the turn is over.
 */
export async function act(
  input: TurnInput,
  iteration: number,
  { runs, asks }: Act,
  answers: ResumeSignal,
): Promise<boolean> {
  let ran = await runCalls(input, iteration, runs)
  if (ran === 'done' && asks) ran = 'asked'
  while (ran === 'asked') {
    const due = await askClient(input, iteration, answers)
    if (due === undefined) return false
    ran = await runCalls(input, iteration, due)
  }
  return ran === 'done'
}

type Ran = 'done' | 'asked' | 'ended'

async function runCalls(input: TurnInput, iteration: number, runs: PlannedTool[]): Promise<Ran> {
  if (runs.length === 0) return 'done'
  setCurrentDetails(`iteration ${iteration} · running ${runs.map(({ tool }) => tool).join(', ')}`)
  let asked = false
  const goesOn = await inParallel(runs, MAX_PARALLEL_TOOLS, async (run) => {
    const outcome = await runCall(input, iteration, run)
    asked ||= outcome === 'asked'
    return outcome !== 'ended'
  })
  if (!goesOn) return 'ended'
  return asked ? 'asked' : 'done'
}

async function runCall(input: TurnInput, iteration: number, run: PlannedTool): Promise<Ran> {
  const { position, tool, timeoutMs, temporal } = run
  const options = { summary: `tool · ${tool}`, startToCloseTimeout: timeoutMs + TOOL_GRACE_MS }
  try {
    if (temporal !== undefined) return await runTemporalCall(input, iteration, { position, tool, target: temporal })
    for (let ability: CallAbility = 'with_children'; ; ) {
      const ran = await runTool.executeWithOptions(options, [input, iteration, position, ability])
      if (ran.outcome === 'busy') await sleep(ran.afterMs)
      else if (ran.outcome !== 'child') return ran.outcome
      else if (ability === 'after_child') await sleep(RECONCILED_MS)
      else {
        setCurrentDetails(`iteration ${iteration} · ${tool} · waiting for ${ran.turn.turnId}`)
        await runChild(ran, tool)
        ability = 'after_child'
      }
    }
  } catch (error) {
    if (isCancellation(error)) throw error
    // A tool's failure never fails the turn: it is reported to the model.
    await failTool(input, iteration, position)
    return 'done'
  }
}

/** Waits for the client's answers and returns the calls to run with them. Undefined if the turn is over. */
async function askClient(
  input: TurnInput,
  iteration: number,
  answers: ResumeSignal,
): Promise<PlannedTool[] | undefined> {
  let settled = await requestCalls(input, iteration)
  const until = Date.now() + (settled.outcome === 'waiting' ? settled.forMs : 0)
  while (settled.outcome === 'waiting') {
    setCurrentDetails(`iteration ${iteration} · waiting for the client until ${new Date(until).toISOString()}`)
    const isOverdue = !(await answers.next(until - Date.now()))
    settled = await settleCalls(input, iteration, isOverdue)
  }
  return settled.outcome === 'ended' ? undefined : settled.runs
}
