/** Messages between the service and its workflows. They contain ids and outcomes, never content. */

/**
 * The input of the workflow `turn`: ids as the API writes them, so that one can be pasted into a search. Turns that began
 * on an early version have plain UUIDs. The workflow's own id is the turn's.
 */
export type TurnInput = { organizationId: string; sessionId: string; turnId: string }

/** Outcome of a turn. `failed` is for turns that began on an early version: now a failed turn fails its workflow. */
export type TurnOutcome = 'completed' | 'failed'

/**
 * What a turn that has answered did, for people who look at its workflow. Counts and names only. `timeline` is the path
 * of its page in the console.
 */
export type TurnReport = {
  outcome: 'completed'
  model: string
  iterations: number
  inputTokens: number
  outputTokens: number
  durationMs: number
  finishReason: string
  timeline: string
}

export const TURN_WORKFLOW = 'turn'
export const RETENTION_WORKFLOW = 'retention'
export const LAUNCH_WORKFLOW = 'launch'
export const EXECUTION_WORKFLOW = 'execution'
export const WEBHOOK_WORKFLOW = 'webhook'

/**
 * Signal to a waiting workflow that there is news in the record: a turn's answers, or the end of an execution's turn. It
 * has no payload: the record is authoritative.
 */
export const RESUME_SIGNAL = 'resume'

/**
 * Call to be run by the service: its index among the step's calls, its tool's name, and the time limit in ms. `temporal`
 * is there for a call that a worker of the organization runs.
 */
export type PlannedTool = { position: number; tool: string; timeoutMs: number; temporal?: TemporalTarget }

/** Place and limits of a call that a worker of the organization runs. `name` is the type of the activity or workflow. */
export type TemporalTarget = {
  kind: 'activity' | 'workflow'
  name: string
  taskQueue: string
  timeoutMs: number
  scheduleToStartMs: number
  heartbeatMs?: number
  retry: { maximumAttempts: number; initialInterval: number; backoffCoefficient: number; maximumInterval: number }
}

/** Outcome of recording such a call. `ended`: the turn has ended. */
export type TemporalOutcome = { outcome: 'done' | 'ended' }

/**
 * End of a call at a worker of the organization. The result, or the error if the worker encrypts it, is a payload that
 * the workflow cannot read. `plain`: the worker returned a result that is not encrypted.
 */
export type TemporalEnd =
  | { status: 'completed' | 'plain' }
  | { status: 'timeout'; limit: string }
  | { status: 'failed'; message: string; type: string }

/**
 * Outcome of a reason step. `ended`: the turn was ended elsewhere. `act`: the model called tools; `asks` is true when
 * some calls wait for the client. `retry`: the model failed for the n-th time in a row and is to be asked again.
 */
export type ReasonOutcome =
  | { outcome: 'answered'; report?: TurnReport }
  | { outcome: 'ended' }
  | { outcome: 'act'; model: string; runs: PlannedTool[]; asks: boolean }
  | { outcome: 'retry'; failures: number; afterMs: number }

/** A reason step that its activity has to go on with: on `taskQueue` if the step has begun in that queue's process. */
export type UnfinishedStep = { outcome: 'unfinished'; taskQueue?: string }

/**
 * What has come of beginning a reason step. `waits`: for a place, whose news comes as a signal. The place is in a process,
 * or, with `isCapped`, among the turns that run at once.
 */
export type BeginOutcome =
  | Extract<ReasonOutcome, { outcome: 'answered' | 'ended' | 'act' }>
  | UnfinishedStep
  | { outcome: 'waits'; isCapped?: true }

/**
 * Beginning of the build ids of workers whose workflows begin reason steps as local activities. Histories of others
 * go on as they began.
 */
export const BEGINS_STEPS = 'begins-steps/'

/**
 * Where the time until the model is asked again passes. In the workflow it shows in Temporal; the workflows of an earlier
 * release leave it to the activity's retries.
 */
export type RetryPlace = 'in_workflow' | undefined

/** State of a turn that waits for its client. `runs` are the calls to run because the user approved them. */
export type SettleOutcome =
  | { outcome: 'waiting'; forMs: number }
  | { outcome: 'settled'; runs: PlannedTool[] }
  | { outcome: 'ended' }

/**
 * Abilities of the workflow that runs a call. `in_workflow`: it waits when the tool asks its user. `with_children`: also,
 * it runs the turn of an agent that the tool asks. `after_child`: it has done so. Earlier releases give none, or the first.
 */
export type CallAbility = 'in_workflow' | 'with_children' | 'after_child' | undefined

/**
 * Outcome of a call. `asked`: its tool asks the user, and is to be run again with the answers. `child`: it is to be run again
 * after `turn`, by which an agent answers it. `busy`: again after a pause, because the agent's session is busy.
 */
export type ToolOutcome =
  | { outcome: 'done' | 'asked' | 'ended' }
  | { outcome: 'child'; turn: TurnInput; agentId: string | null }
  | { outcome: 'busy'; afterMs: number }

/** Outcome of failing a turn, which may have ended before. `ended`: cancelled, or deleted with its session. */
export type FailOutcome = TurnOutcome | 'ended'

/** The reason why a turn failed. The sentence for the user is in the record, not here. */
export type TurnErrorCode =
  | 'llm_error'
  | 'no_model'
  | 'max_iterations'
  | 'max_tool_calls'
  | 'max_output_tokens'
  | 'turn_too_old'
  | 'answer_too_long'
  | 'too_many_tool_calls'
  | 'budget_exceeded'
  | 'price_unknown'
  | 'output_invalid'
  | 'timeout'
  | 'internal_error'

/**
 * The input of the workflow `launch`, which a Temporal Schedule starts. `revision` counts the changes of the schedule that
 * Temporal knew of.
 */
export type LaunchInput = { organizationId: string; scheduleId: string; revision: number }

/** Ids of the executions that a launch started. */
export type LaunchOutcome = { executions: string[] }

/** The input of the workflow `execution`, whose own id is the execution's. */
export type ExecutionInput = { organizationId: string; scheduleId: string; executionId: string }

/**
 * Outcome of an attempt of an execution. `waits`: its turn has yet to end. `retry`: it failed for the n-th time in a row
 * and is to be tried again.
 */
export type ExecutionOutcome =
  | { outcome: 'completed' | 'failed' | 'waits' }
  | { outcome: 'retry'; failures: number; afterMs: number }

/** Counts of a retention run: deleted deltas, and turns that are done with. `more`: its time was up before the end. */
export type RetentionOutcome = { turns: number; deltas: number; more: boolean }

/** The input of the workflow `webhook`. `laneId` is a plain UUID, of a session if the deliveries are about one. */
export type LaneInput = { organizationId: string; webhookId: string; laneId: string }

/** Outcome of an attempt. `next`: a delivery is to be made at once. `done`: none is pending. */
export type LaneOutcome = { outcome: 'next' | 'done' } | { outcome: 'retry'; afterMs: number }
