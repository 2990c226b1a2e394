import type { TokenUsage } from '../../contract/common.ts'
import type { FailOutcome, TurnErrorCode, TurnInput } from '../../workflows/messages.ts'
import type { Deps } from '../deps.ts'
import type { NewEvent } from '../events/append.ts'
import { withLockedSession } from '../events/transaction.ts'
import { toId } from '../ids.ts'
import { endOpenCalls } from './calls.ts'
import { loadTurnAlone, type TurnContext } from './load.ts'
import { nextTurn } from './queue.ts'
import { type StartedTurn, startTurnSoon } from './start.ts'

/** How every turn begins. Recorded once: a repeated beginning is left out, session.started also in later turns. */
export function beginning(context: TurnContext): NewEvent[] {
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

/** How a turn ends that has its answer; `usage` is that of its last step. session.idled waits for the queue to empty. */
export function ending(context: TurnContext, iterations: number, usage: TokenUsage): NewEvent[] {
  const summary = {
    turn_id: toId('turn', context.turnId),
    iterations,
    usage: addUsage(context.usage, usage),
  }
  const duration_ms = Date.now() - (context.startedAt?.getTime() ?? Date.now())
  return [
    { type: 'turn.completed', data: { ...summary, duration_ms, input_content: context.inputContent } },
    { type: 'session.idled', data: summary },
  ]
}

const addUsage = (sum: TokenUsage, more: TokenUsage): TokenUsage => ({
  input_tokens: sum.input_tokens + more.input_tokens,
  output_tokens: sum.output_tokens + more.output_tokens,
  cache_read_tokens: (sum.cache_read_tokens ?? 0) + (more.cache_read_tokens ?? 0),
  cache_creation_tokens: (sum.cache_creation_tokens ?? 0) + (more.cache_creation_tokens ?? 0),
})

const SENTENCES: Record<TurnErrorCode, string> = {
  llm_error: 'The model could not answer.',
  no_model: 'No model is available for this turn.',
  max_iterations: 'The turn took more steps than are allowed.',
  timeout: 'The turn took longer than is allowed.',
  internal_error: 'The turn failed because of an error in the service.',
}

/**
 * The last step of a turn that cannot have its answer. `iteration` is its model call; the sentence that this left in
 * the record goes to the user. May be repeated; events that are there already are left out.
 */
export async function failTurn(
  deps: Deps,
  turn: TurnInput,
  iteration: number,
  code: TurnErrorCode,
): Promise<FailOutcome> {
  const step = `reason:${iteration}`
  const context = await loadTurnAlone(deps, turn, step)
  if (context === null) return 'ended'
  const turn_id = toId('turn', turn.turnId)
  const error = (code === 'llm_error' && context.attempts.error) || SENTENCES[code]
  const appended = await withLockedSession(deps, turn, async (session) =>
    session.append(turn.turnId, [
      ...beginning(context),
      ...(await endOpenCalls(session.db, turn.turnId, 'The turn failed before the call had a result.')),
      { type: 'reason.completed', step, data: { success: false, has_tool_calls: false, tool_call_count: 0, error } },
      { type: 'turn.failed', data: { turn_id, error, error_code: code } },
      { type: 'session.idled', data: { turn_id, iterations: context.iterations, usage: context.usage } },
    ]),
  )
  if (appended?.outcome === 'appended' || appended?.outcome === 'turn_ended') {
    startNext(deps, context, appended.nextTurnId)
  }
  return appended?.outcome === 'appended' ? 'failed' : readOutcome(deps, turn)
}

/** An earlier attempt may have failed the turn, or somebody else ended it. */
async function readOutcome(deps: Deps, { turnId }: TurnInput): Promise<FailOutcome> {
  const [row] = await deps.db.$queryRaw<{ status: string }[]>`
    SELECT status::text FROM turns WHERE id = ${turnId}::uuid`
  return row?.status === 'failed' || row?.status === 'completed' ? row.status : 'ended'
}

/** Whoever ends a turn starts the next in the queue. */
export function startNext(deps: Deps, ended: StartedTurn, nextTurnId: string | null): void {
  const { organizationId, sessionId, agentId } = ended
  if (nextTurnId !== null) startTurnSoon(deps, { organizationId, sessionId, agentId, turnId: nextTurnId })
}

/** For a turn that an attempt ended which may have died before it could start the next. */
export async function startNextOf(deps: Deps, ended: StartedTurn): Promise<void> {
  startNext(deps, ended, await nextTurn(deps.db, ended.sessionId))
}
