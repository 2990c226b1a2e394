import { whenLoopIsFree } from '../../lib/event-loop.ts'
import { sleep } from '../../lib/sleep.ts'
import { warnRarely } from '../../lib/warn-rarely.ts'
import { toId } from '../kit/ids.ts'
import type { Deps } from './deps.ts'
import type { StartedTurn } from './turn-workflows.ts'

const RETRY_PAUSE_MS = 1000
/** Time for which Temporal is not told of a turn while the process is busy, with the first tokens of others for example. */
const BUSY_MS = 2000

/**
 * Starts a turn's workflow without waiting for Temporal. The sweeper starts a turn whose start fails here. With `early`,
 * for the caller that has just made the turn its session's next, the model is asked meanwhile if this process can. With
 * `claimed`, an early attempt here has already claimed the turn's first step.
 */
export function startTurnSoon(deps: Deps, turn: StartedTurn, when?: 'early' | 'claimed'): void {
  void start(deps, turn, when)
}

async function start(deps: Deps, turn: StartedTurn, when?: 'early' | 'claimed'): Promise<void> {
  const owner = await deps.owners.ownerOf(turn.organizationId).catch(() => turn.organizationId)
  // The workflow begins the step if this fails.
  const early = when && deps.attempts.beginEarly(turn, { owner, holdsStep: when === 'claimed' })
  // Whichever process gets the workflow's first task finds the claim then, and Temporal takes no time from the model's.
  await early?.heard
  if (early !== undefined) await whenLoopIsFree(BUSY_MS)
  for (;;) {
    try {
      await deps.workflows.startTurn(turn, owner, early?.goneOn)
      deps.attempts.reportStart(true)
      return early?.acknowledge()
    } catch (error) {
      deps.attempts.reportStart(false)
      const logFields = { turn: toId('turn', turn.turnId), err: (error as Error).message }
      warnRarely(deps.log, logFields, 'turn not started; the sweeper will start it')
    }
    if (early === undefined || early.over.aborted) return
    // The end of the attempt waits for the start.
    await sleep(RETRY_PAUSE_MS, early.over)
    if (early.over.aborted) return
  }
}
