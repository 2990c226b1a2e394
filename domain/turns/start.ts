import { warnRarely } from '../../lib/warn-rarely.ts'
import type { Deps } from '../deps.ts'
import { toId } from '../ids.ts'
import type { StartedTurn } from './turn-workflows.ts'

/** Starts a turn's workflow without waiting for Temporal. The sweeper starts a turn whose start fails here. */
export function startTurnSoon(deps: Deps, turn: StartedTurn): void {
  deps.workflows.startTurn(turn).catch((error: Error) => {
    warnRarely(
      deps.log,
      { turn: toId('turn', turn.turnId), err: error.message },
      'turn not started; the sweeper will start it',
    )
  })
}
