import { BUDGET_TOOL } from '../../../contract/budgets.ts'
import type { NewEvent } from '../../events/log/append.ts'
import { actStep, budgetStep, callSteps, newQuestionId } from '../../events/log/steps.ts'
import { newUuid } from '../../kit/ids.ts'
import { mostCostOf } from '../../models/llm/cost.ts'
import { outputTools } from '../../models/llm/structured/with-output.ts'
import { estimateInputTokens, MESSAGE_TOKENS } from '../../models/llm/token-estimate.ts'
import { budgetQuestion } from '../../spending/raise.ts'
import { reserveBudgets } from '../../spending/reserve.ts'
import { appendAs, RightLost, waitForWorkflow } from './attempt.ts'
import type { ModelCall } from './model-call.ts'
import type { Reasoned } from './running-attempt.ts'

/** Limit on the output of a model whose own limit is unknown, for calls that count towards a budget. */
const OUTPUT_TOKENS = 16_384

/** Model call that is about to be made. `before` returns the events before its step's own. */
type Planned = { call: ModelCall; before: () => Promise<NewEvent[]> }

/** Outcome of a turn that waits until its budget is raised. */
export const ASKS_FOR_BUDGET: Reasoned = { outcome: 'act', model: '', runs: [], asks: true }

/**
 * Reserves the most that a model call can cost in the budgets of its turn. Returns the call's limit of output tokens, or
 * the step's outcome if a budget is used up. A turn of a budget that asks then waits, like a turn whose call waits for
 * approval; its next step tries again.
 */
export async function spend({ call, before }: Planned): Promise<{ maxOutputTokens?: number | undefined } | Reasoned> {
  const { deps, context, step, profile, modelInput, iteration, maxOutputTokens } = call
  if (!context.hasBudgets) return { maxOutputTokens }
  const { messages } = modelInput
  const tools = [...modelInput.tools, ...outputTools(context.outputSchema)]
  const inputTokens = estimateInputTokens(call.systemPrompt, messages, tools) + MESSAGE_TOKENS * messages.length
  const outputTokens = Math.min(maxOutputTokens ?? Number.POSITIVE_INFINITY, profile?.limits?.output ?? OUTPUT_TOKENS)
  const planned = {
    turnId: context.turnId,
    step,
    fence: call.attempt.fence,
    inputTokens,
    outputTokens,
    cost: mostCostOf(profile, inputTokens),
  }
  const reserved = await reserveBudgets(deps, { ...planned, mayBeUnpriced: deps.limits.mayBeUnpriced }, call.signal)
  if (reserved.outcome === 'reserved') return { maxOutputTokens: reserved.outputTokens }
  if (reserved.outcome === 'fenced') throw new RightLost('fenced')
  if (reserved.outcome === 'ended') return { outcome: 'ended' }
  if (reserved.outcome === 'unpriced') return { outcome: 'failed', code: 'price_unknown' }
  const asked = await budgetQuestion(deps, reserved.budget, newQuestionId())
  if (asked === undefined || (await isRefused(call))) return { outcome: 'failed', code: 'budget_exceeded' }
  call.attempt.early?.heard()
  await waitForWorkflow(call.attempt, call.signal)
  const execId = newUuid()
  await appendAs(deps, context, step, call.attempt, [
    ...(await before()),
    { type: 'act.started', step: actStep(iteration), execId, data: { tool_calls: [] } },
    { type: 'tool.call_requested', step: budgetStep(iteration), execId, data: { tool_calls: [asked] } },
  ])
  call.attempt.early?.claimed()
  return ASKS_FOR_BUDGET
}

/** Whether the turn has asked before this step and was not given more. */
async function isRefused({ deps, context, iteration }: ModelCall): Promise<boolean> {
  const answers = await deps.db.$queryRaw<unknown[]>`
    SELECT 1 FROM events
    WHERE turn_id = ${context.turnId}::uuid AND type = 'tool.completed' AND step LIKE ${callSteps(iteration - 1)}
      AND data ->> 'tool_name' = ${BUDGET_TOOL} AND NOT (data ->> 'success')::boolean`
  return answers.length > 0
}
