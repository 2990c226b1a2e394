import type { TurnErrorCode, TurnInput } from '../../workflows/messages.ts'
import type { Deps } from '../deps.ts'
import { type Appended, appendEvents, type NewEvent } from '../events/append.ts'
import { toId } from '../ids.ts'
import { presentUsage } from '../usage.ts'
import { startTurnSoon } from './start.ts'

const PREVIEW_CHARACTERS = 200

/** `ended`: the turn is over already, or its session is gone; the workflow has nothing left to do. */
export type StepOutcome = 'going_on' | 'ended'

const outcomeOf = (appended: Appended): StepOutcome => (appended.outcome === 'appended' ? 'going_on' : 'ended')

/** The first step of a turn. May be repeated. */
export async function beginTurn(deps: Deps, turn: TurnInput): Promise<StepOutcome> {
  const rows = await deps.db.$queryRaw<BeginRow[]>`
    SELECT s.harness_id AS "harnessId", s.agent_id AS "agentId", s.model_id AS "modelId", left((
      SELECT string_agg(part ->> 'text', '') FROM jsonb_array_elements(e.data #> '{message,content}') AS part
    ), ${PREVIEW_CHARACTERS}) AS "inputContent"
    FROM turns t JOIN sessions s ON s.id = t.session_id
    JOIN events e ON e.session_id = t.session_id AND e.sequence = t.input_sequence
    WHERE t.id = ${turn.turnId}::uuid`
  const row = rows[0]
  if (row === undefined) return 'ended'
  const turn_id = toId('turn', turn.turnId)
  const input_message_id = toId('message', turn.turnId)
  return outcomeOf(
    await appendEvents(deps, turn, [
      {
        type: 'session.started',
        data: {
          harness_id: toId('harness', row.harnessId),
          agent_id: row.agentId && toId('agent', row.agentId),
          model_id: row.modelId && toId('model', row.modelId),
        },
      },
      { type: 'session.activated', data: { turn_id, input_message_id } },
      { type: 'turn.started', data: { turn_id, input_message_id, input_content: row.inputContent } },
    ]),
  )
}

type BeginRow = { harnessId: string; agentId: string | null; modelId: string | null; inputContent: string | null }

/** The last step of a turn that has its answer. May be repeated: the turn ends once. */
export async function completeTurn(deps: Deps, turn: TurnInput): Promise<void> {
  const row = await deps.db.turn.findUnique({ where: { id: turn.turnId } })
  if (!row) return
  const turn_id = toId('turn', turn.turnId)
  const summary = { turn_id, iterations: row.iterations, usage: presentUsage(row) }
  const duration_ms = row.startedAt ? Date.now() - row.startedAt.getTime() : null
  await endTurn(deps, turn, [
    { type: 'turn.completed', data: { ...summary, duration_ms } },
    { type: 'session.idled', data: summary },
  ])
}

const SENTENCES: Record<TurnErrorCode, string> = {
  llm_error: 'The model could not answer.',
  no_model: 'No model is available for this turn.',
  max_iterations: 'The turn took more steps than are allowed.',
  timeout: 'The turn took longer than is allowed.',
  internal_error: 'The turn failed because of an error in the service.',
}

/**
 * The last step of a turn that cannot have its answer. `step` is the reason step that failed; the sentence it left
 * in the record goes to the user. May be repeated.
 */
export async function failTurn(deps: Deps, turn: TurnInput, step: string, code: TurnErrorCode): Promise<void> {
  const [row, failed] = await Promise.all([
    deps.db.turn.findUnique({ where: { id: turn.turnId } }),
    deps.db.turnStep.findUnique({ where: { turnId_step: { turnId: turn.turnId, step } } }),
  ])
  if (!row) return
  const turn_id = toId('turn', turn.turnId)
  const error = (code === 'llm_error' && failed?.error) || SENTENCES[code]
  await endTurn(deps, turn, [
    { type: 'reason.completed', step, data: { success: false, has_tool_calls: false, tool_call_count: 0, error } },
    { type: 'turn.failed', data: { turn_id, error, error_code: code } },
    { type: 'session.idled', data: { turn_id, iterations: row.iterations, usage: presentUsage(row) } },
  ])
}

/** Records the end; whoever ends a turn starts the next in the queue. */
async function endTurn(deps: Deps, turn: TurnInput, events: NewEvent[]): Promise<void> {
  const appended = await appendEvents(deps, turn, events)
  if (appended.outcome !== 'appended' && appended.outcome !== 'turn_ended') return
  if (appended.nextTurnId !== null) startTurnSoon(deps, { ...turn, turnId: appended.nextTurnId })
}
