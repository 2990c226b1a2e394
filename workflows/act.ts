import { isCancellation, setCurrentDetails } from '@temporalio/workflow'
import { failTool, requestCalls, runTool, settleCalls } from './activities.ts'
import type { ClientAnswers } from './client-answers.ts'
import type { PlannedTool, ReasonOutcome, TurnInput } from './messages.ts'
import { inParallel } from './parallel.ts'

/** Time beyond a tool's own limit, in which its result is recorded. */
const TOOL_GRACE_MS = 30_000
const MAX_PARALLEL_TOOLS = 16

type Act = Pick<Extract<ReasonOutcome, { outcome: 'act' }>, 'runs' | 'asks'>

/** Gets the results of all calls of a step: first the service's own, then the client's. False when the turn is over. */
export async function act(
  input: TurnInput,
  iteration: number,
  { runs, asks }: Act,
  answers: ClientAnswers,
): Promise<boolean> {
  if (!(await runCalls(input, iteration, runs))) return false
  if (!asks) return true
  const approved = await askClient(input, iteration, answers)
  return approved !== undefined && runCalls(input, iteration, approved)
}

async function runCalls(input: TurnInput, iteration: number, runs: PlannedTool[]): Promise<boolean> {
  if (runs.length === 0) return true
  setCurrentDetails(`iteration ${iteration} · running ${runs.map(({ tool }) => tool).join(', ')}`)
  return inParallel(runs, MAX_PARALLEL_TOOLS, (run) => runCall(input, iteration, run))
}

async function runCall(
  input: TurnInput,
  iteration: number,
  { position, tool, timeoutMs }: PlannedTool,
): Promise<boolean> {
  const options = { summary: `tool · ${tool}`, startToCloseTimeout: timeoutMs + TOOL_GRACE_MS }
  try {
    const { outcome } = await runTool.executeWithOptions(options, [input, iteration, position])
    return outcome === 'done'
  } catch (error) {
    if (isCancellation(error)) throw error
    // A tool's failure never fails the turn: it is reported to the model.
    await failTool(input, iteration, position)
    return true
  }
}

/** Waits for the client's answers and returns the calls that it approved. Undefined when the turn is over. */
async function askClient(
  input: TurnInput,
  iteration: number,
  answers: ClientAnswers,
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
