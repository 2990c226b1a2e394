import type { ToolOutput } from '../tools/capabilities/tool-output.ts'
import type { StartedTurn } from './turn-workflows.ts'

/** Turn by which an agent answers a call of another agent's turn. All ids are plain UUIDs. */
export type ChildTurn = { agentId: string; sessionId: string; turnId: string }

/** Agent that a call asks: in a new session, or in the same session as the earlier calls of its session. */
export type AskedAgent = { agentId: string; session: 'new' | 'same' }

/** Call that asks an agent: its turn, and the key of the call among all calls. */
export type AskingCall = { organizationId: string; sessionId: string; turnId: string; step: string }

/** The turns by which agents answer other agents. */
export type ChildTurns = {
  /** Chooses session and turn for a call. A call that has begun keeps the choice in its tool.started. */
  choose(call: AskingCall, asked: AskedAgent): Promise<ChildTurn>
  /**
   * Returns the agent's answer. Throws `AwaitsTurn` while there is none, and `ToolError` if there will be none. Unless it
   * `mayStart`, the turn has been started before.
   */
  ask(call: AskingCall, child: ChildTurn, message: string, mayStart: boolean): Promise<ToolOutput>
}

/**
 * Thrown by a tool that asks an agent: the call is run again when the agent's turn has ended. Without a turn, the agent's
 * session is busy.
 */
export class AwaitsTurn extends Error {
  override name = 'AwaitsTurn'
  readonly turn: StartedTurn | undefined
  constructor(turn?: StartedTurn) {
    super('the tool waits for the turn of an agent')
    this.turn = turn
  }
}
