import type { TurnInput } from '../../workflows/messages.ts'

/** A turn as it is started; the agent, a plain uuid, only labels the workflow in Temporal. */
export type StartedTurn = TurnInput & { agentId: string | null }

/** Starts the workflow of a turn, or finds it started. Rejects when Temporal does not answer in time. */
export type TurnStarter = (turn: StartedTurn) => Promise<void>

/** What is done to the workflow of a turn from outside; `turnId` is a plain uuid. All reject when Temporal is away. */
export type TurnControl = {
  /** Makes a waiting turn look at the record again. Resolves also when it has no workflow, or one that has ended. */
  resumeTurn(turnId: string): Promise<void>
  /** Asks the workflow to stop and does not wait until it has. Resolves also when there is none that runs. */
  cancelTurn(turnId: string): Promise<void>
  /** False only when Temporal has said so: the turn has no workflow, or one that has ended. */
  isTurnRunning(turnId: string): Promise<boolean>
}
