/** What crosses the border between the service and its workflows: ids and outcomes, never content. */

/** The input of the workflow `turn`; all ids are plain uuids. Its workflow id is the turn's wire id. */
export type TurnInput = { organizationId: string; sessionId: string; turnId: string }

/** `failed` is how turns ended that began on an early version; now a failed turn fails its workflow. */
export type TurnOutcome = 'completed' | 'failed'

export const TURN_WORKFLOW = 'turn'
export const RETENTION_WORKFLOW = 'retention'

/** Tells a waiting turn that the record has what it waits for. Without a payload: the record is what counts. */
export const RESUME_SIGNAL = 'resume'

/** A call that the service runs: its place among the calls of its step, the tool's name, and the tool's time in ms. */
export type PlannedTool = { position: number; tool: string; timeoutMs: number }

/** How a reason step ended. `ended`: the turn was, by somebody else. `act`: the model called tools; `asks`: some calls wait for the client. */
export type ReasonOutcome =
  | { outcome: 'answered' }
  | { outcome: 'ended' }
  | { outcome: 'act'; model: string; runs: PlannedTool[]; asks: boolean }

/** Where a turn stands that asked its client; `runs` are the calls that the user approved. */
export type SettleOutcome =
  | { outcome: 'waiting'; forMs: number }
  | { outcome: 'settled'; runs: PlannedTool[] }
  | { outcome: 'ended' }

export type ToolOutcome = { outcome: 'done' | 'ended' }

/** How a turn is that was to fail; it may have ended before. `ended`: cancelled, or with its session deleted. */
export type FailOutcome = TurnOutcome | 'ended'

/** Why a turn failed; the sentence for the user is in the record, not here. */
export type TurnErrorCode = 'llm_error' | 'no_model' | 'max_iterations' | 'timeout' | 'internal_error'

/** What a run of retention deleted: deltas, and how many turns were done with. `more`: its time was up before the end. */
export type RetentionOutcome = { turns: number; deltas: number; more: boolean }
