import type { TurnInput } from '../../workflows/messages.ts'
import type { Deps } from '../deps.ts'
import { toId } from '../ids.ts'

/** Starts the workflow of a turn, or finds it started. Rejects when Temporal does not answer in time. */
export type TurnStarter = (turn: TurnInput) => Promise<void>

/** For callers that must not wait for Temporal: a turn whose start fails here is started by the sweeper. */
export function startTurnSoon(deps: Deps, turn: TurnInput): void {
  deps.startTurn(turn).catch((error: Error) => {
    deps.log.warn({ turn: toId('turn', turn.turnId), err: error.message }, 'turn not started; the sweeper will')
  })
}
