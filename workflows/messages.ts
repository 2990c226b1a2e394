/** What crosses the border between the service and its workflows: ids and outcomes, never content. */

/** The input of the workflow `turn`; all ids are plain uuids. Its workflow id is the turn's wire id. */
export type TurnInput = { organizationId: string; sessionId: string; turnId: string }

/** `ended` by somebody else: cancelled, or its session deleted. */
export type TurnOutcome = 'completed' | 'failed' | 'ended'

export const TURN_WORKFLOW = 'turn'

/** How a reason step ended. */
export type ReasonOutcome = { outcome: 'answered' } | { outcome: 'ended' }

/** Why a turn failed; the sentence for the user is in the record, not here. */
export type TurnErrorCode = 'llm_error' | 'no_model' | 'max_iterations' | 'timeout' | 'internal_error'
