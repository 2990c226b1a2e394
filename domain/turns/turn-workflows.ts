import type { Payload } from '../tools/task-queues/sealing.ts'
import type { TurnPlace } from './turn-place.ts'

/** A turn to start. `agentId`, a plain UUID, only labels the workflow in Temporal. */
export type StartedTurn = TurnPlace & { agentId: string | null }

/**
 * Starts the workflow of a turn unless it is already started, a few of an owner at a time. The next one of the owner waits
 * for a moment until `goneOn` resolves. Rejects when Temporal does not answer in time.
 */
export type TurnStarter = (turn: StartedTurn, owner: string, goneOn?: Promise<void>) => Promise<void>

/**
 * Operations on a turn's workflow. `turnId` is a plain UUID. All reject when Temporal is unavailable. Those with an owner
 * wait for their turn: only a few of an owner are under way at a time.
 */
export type TurnControl = {
  /** Makes a waiting turn read the record again. Also resolves when it has no running workflow. */
  resumeTurn(turnId: string, owner: string): Promise<void>
  /** Requests the workflow's cancellation without waiting for it. Also resolves when no workflow is running. */
  cancelTurn(turnId: string, owner: string): Promise<void>
  /**
   * Fails the activities of a workflow that Temporal believes to run in a process from which they are lost, of one type if
   * given, so that they are tried again. False when there is none. `workflowId` as Temporal has it. `isLost` gets the name of
   * an activity as `<workflow>/<id>/<attempt>`.
   */
  releaseActivities(
    workflowId: string,
    isLost: (process: number, activity: string) => Promise<boolean>,
    type?: string,
  ): Promise<boolean>
  /** Reads the latest heartbeat of an activity of the workflow. Undefined when the activity is not pending. */
  readActivity(turnId: string, activityId: string): Promise<{ heartbeat: Payload | undefined } | undefined>
  /** Whether a worker of workflows has polled the task queue in the last minutes. */
  hasPoller(taskQueue: string): Promise<boolean>
  /** State of the workflow. `unknown`: Temporal has never had it, or no longer has it. */
  readTurnState(turnId: string): Promise<'running' | 'closed' | 'unknown'>
}
