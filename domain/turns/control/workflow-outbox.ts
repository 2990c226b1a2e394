import type { Deps } from '../../deps.ts'
import { toId } from '../../ids.ts'

/** A turn whose workflow does not know yet what the record says; `noticeDueAt` is the database's time of it. */
export type Notice = { turnId: string; hasEnded: boolean; noticeDueAt: Date }

/**
 * Tells a turn's workflow that it has been cancelled, or that the results it waits for are there. Not waited for: the
 * record is what counts, and what fails here the sweeper makes good.
 */
export function notifyWorkflow(deps: Deps, notice: Notice): void {
  tellTurn(deps, notice).catch((error: Error) => {
    deps.log.warn(
      { turn: toId('turn', notice.turnId), err: error.message },
      'workflow not notified; the sweeper will notify it',
    )
  })
}

async function tellTurn(deps: Deps, { turnId, hasEnded, noticeDueAt }: Notice): Promise<void> {
  await (hasEnded ? deps.workflows.cancelTurn(turnId) : deps.workflows.resumeTurn(turnId))
  // A later notice is not this one's to clear.
  await deps.db.turn.updateMany({
    where: { id: turnId, noticeDueAt: { lte: noticeDueAt } },
    data: { noticeDueAt: null },
  })
}
