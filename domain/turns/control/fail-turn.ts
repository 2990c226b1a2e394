import type { TurnErrorCode } from '../../../contract/errors.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import type { FailOutcome } from '../../../workflows/messages.ts'
import { reasonStep } from '../../events/log/steps.ts'
import { withLockedSession } from '../../events/log/transaction.ts'
import { newUuid, toId } from '../../kit/ids.ts'
import { describeReached } from '../../spending/raise.ts'
import { endOpenCalls } from '../calls.ts'
import type { Deps } from '../deps.ts'
import { startNext } from '../queue.ts'
import { passPlaceOn } from '../run/turn-admission.ts'
import { loadTurnAlone } from '../run/turn-context.ts'
import { turnStartedEvents } from '../run/turn-events.ts'
import type { TurnPlace } from '../turn-place.ts'

const SENTENCES: Record<TurnErrorCode, string> = {
  llm_error: 'The model could not answer.',
  no_model: 'No model is available for this turn.',
  max_iterations: 'The turn took more steps than are allowed.',
  max_tool_calls: 'The turn called more tools than are allowed.',
  max_output_tokens: 'The answers of the turn are longer than is allowed.',
  turn_too_old: 'The turn has run for longer than a turn may run.',
  answer_too_long: 'The answer of the model is too long.',
  too_many_tool_calls: 'The answer of the model calls more tools than one answer may call.',
  budget_exceeded: 'A budget is used up.',
  price_unknown: 'The price of the model is unknown, so the call cannot count towards a budget in USD.',
  output_invalid: "The model gave no answer that fits the turn's output_schema.",
  timeout: 'The turn took longer than is allowed.',
  internal_error: 'The turn failed because of an error in the service.',
}

/** Codes of failures for which the model call has recorded a sentence. */
const OF_MODELS: ReadonlySet<TurnErrorCode> = new Set<TurnErrorCode>([
  'llm_error',
  'answer_too_long',
  'too_many_tool_calls',
])

/**
 * Ends a turn as failed. `iteration` is its latest model call; if that failed, its recorded error is shown to the user.
 * Idempotent: recorded events are skipped.
 */
export async function failTurn(
  deps: Deps,
  turn: TurnPlace,
  iteration: number,
  code: TurnErrorCode,
): Promise<FailOutcome> {
  const step = reasonStep(iteration)
  const context = await loadTurnAlone(deps, turn, step)
  if (context === null) return 'ended'
  const turn_id = toId('turn', turn.turnId)
  const ofBudget = code === 'budget_exceeded' ? await describeReached(deps, turn.turnId) : undefined
  const error = ofBudget ?? ((OF_MODELS.has(code) && context.attempts.error) || SENTENCES[code])
  const appended = await withLockedSession(deps, turn, async (session) => {
    const execId = await lastExecution(session.db, turn, step)
    const data = { success: false, has_tool_calls: false, tool_call_count: 0, error }
    return session.append(turn.turnId, [
      ...turnStartedEvents(context),
      ...(await endOpenCalls(session.db, turn.turnId, 'The turn failed before the call had a result.')),
      { type: 'reason.completed', step, execId, data },
      { type: 'turn.failed', data: { turn_id, error, error_code: code } },
      { type: 'session.idled', data: { turn_id, iterations: context.iterations, usage: context.usage } },
    ])
  })
  if (appended?.outcome === 'appended') startNext(deps, context, appended.nextTurnId, 'early')
  if (appended?.outcome === 'turn_ended') startNext(deps, context, appended.nextTurnId)
  passPlaceOn(deps, context)
  return appended?.outcome === 'appended' ? 'failed' : readOutcome(deps, turn)
}

/** Reads the latest execution of a reason step, or makes one up for a step that never began. */
async function lastExecution(
  db: Prisma.TransactionClient,
  { sessionId, turnId }: TurnPlace,
  step: string,
): Promise<string> {
  const [row] = await db.$queryRaw<{ execId: string }[]>`
    SELECT exec_id AS "execId" FROM events
    WHERE session_id = ${sessionId}::uuid AND sequence > (SELECT input_sequence FROM turns WHERE id = ${turnId}::uuid)
      AND turn_id = ${turnId}::uuid AND type IN ('reason.started', 'output.message.started') AND step = ${step}
    ORDER BY sequence DESC LIMIT 1`
  return row?.execId ?? newUuid()
}

/** Reads the end of a turn that was not failed here: an earlier attempt failed it, or it ended in another way. */
async function readOutcome(deps: Deps, { turnId }: TurnPlace): Promise<FailOutcome> {
  const [row] = await deps.db.$queryRaw<{ status: string }[]>`
    SELECT status::text FROM turns WHERE id = ${turnId}::uuid`
  return row?.status === 'failed' || row?.status === 'completed' ? row.status : 'ended'
}
