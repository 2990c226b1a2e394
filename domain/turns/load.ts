import { Controls, type Message } from '../../contract/messages.ts'
import type { TurnInput } from '../../workflows/messages.ts'
import type { Deps } from '../deps.ts'
import { readConversation } from '../events/read.ts'
import { toId } from '../ids.ts'
import { type CatalogModel, defaultModel, findModel } from '../llm/catalog.ts'

/** What a step of a turn works with. */
export type TurnContext = {
  sessionId: string
  turnId: string
  harnessId: string
  agentId: string | null
  modelId: string | null
  systemPrompt: string
  model: CatalogModel
  reasoningEffort: string | undefined
  messages: Message[]
  /** Model calls of the session before this turn. */
  earlierCalls: number
  /** What earlier attempts of the step left. `succeeded` is null while none has finished it. */
  attempts: { failures: number; waitedMs: number; succeeded: boolean | null }
}

type Row = {
  controls: unknown
  harnessId: string
  agentId: string | null
  modelId: string | null
  systemPrompt: string | null
  agentModelId: string | null
  earlierCalls: number
  failures: number
  waitedMs: number
  succeeded: boolean | null
}

/** Null when the turn's session is gone. */
export async function loadTurn(
  deps: Deps,
  { sessionId, turnId }: TurnInput,
  step: string,
): Promise<TurnContext | null> {
  const [rows, messages] = await Promise.all([readTurn(deps, turnId, step), readConversation(deps, sessionId, turnId)])
  const row = rows[0]
  if (row === undefined) return null
  const controls = Controls.safeParse(row.controls).data
  const modelIds = [
    controls?.model_id,
    row.modelId && toId('model', row.modelId),
    row.agentModelId && toId('model', row.agentModelId),
  ]
  return {
    sessionId,
    turnId,
    harnessId: row.harnessId,
    agentId: row.agentId,
    modelId: row.modelId,
    systemPrompt: row.systemPrompt ?? '',
    model: chooseModel(deps, modelIds),
    reasoningEffort: controls?.reasoning?.effort ?? undefined,
    messages,
    earlierCalls: row.earlierCalls,
    attempts: { failures: row.failures, waitedMs: row.waitedMs, succeeded: row.succeeded },
  }
}

/** Message, session, agent, default: an id that is gone falls through to the next. */
function chooseModel(deps: Deps, ids: (string | null | undefined)[]): CatalogModel {
  for (const id of ids) {
    const model = id ? findModel(deps.models, id) : undefined
    if (model !== undefined) return model
  }
  return defaultModel(deps.models)
}

const readTurn = (deps: Deps, turnId: string, step: string) => deps.db.$queryRaw<Row[]>`
  SELECT t.controls, s.harness_id AS "harnessId", s.agent_id AS "agentId", s.model_id AS "modelId",
    a.system_prompt AS "systemPrompt", a.default_model_id AS "agentModelId",
    (SELECT coalesce(sum(iterations), 0)::int FROM turns WHERE session_id = s.id AND input_sequence < t.input_sequence)
      AS "earlierCalls",
    coalesce(p.failures, 0) AS failures, coalesce(p.waited_ms, 0) AS "waitedMs",
    (SELECT (data ->> 'success')::boolean FROM events
      WHERE turn_id = t.id AND type = 'reason.completed' AND step = ${step}
        AND type NOT IN ('output.message.started', 'output.message.delta', 'reason.thinking.delta')) AS succeeded
  FROM turns t JOIN sessions s ON s.id = t.session_id LEFT JOIN agents a ON a.id = s.agent_id
  LEFT JOIN turn_steps p ON p.turn_id = t.id AND p.step = ${step}
  WHERE t.id = ${turnId}::uuid`
