import { warnRarely } from '../../../lib/warn-rarely.ts'
import { toId } from '../../kit/ids.ts'
import type { Deps } from '../deps.ts'

/** A notice owed to a turn's workflow about a change in the record. `noticeDueAt` is the change's database time. */
export type Notice = { turnId: string; organizationId: string; hasEnded: boolean; noticeDueAt: Date }

/**
 * Notifies a turn's workflow that the turn was cancelled, or that the results it waits for are in. Never rejects, and
 * need not be awaited: the record is authoritative, and the sweeper repeats a notice that fails.
 */
export async function notifyWorkflow(deps: Deps, notice: Notice): Promise<void> {
  try {
    await sendNotice(deps, notice)
  } catch (error) {
    const fields = { turn: toId('turn', notice.turnId), err: (error as Error).message }
    warnRarely(deps.log, fields, 'workflow not notified; the sweeper will notify it')
  }
}

async function sendNotice(deps: Deps, { turnId, organizationId, hasEnded, noticeDueAt }: Notice): Promise<void> {
  const owner = await deps.owners.ownerOf(organizationId)
  await (hasEnded ? deps.workflows.cancelTurn(turnId, owner) : deps.workflows.resumeTurn(turnId, owner))
  // A later notice is still due and must not be cleared.
  await deps.db.turn.updateMany({
    where: { id: turnId, noticeDueAt: { lte: noticeDueAt } },
    data: { noticeDueAt: null },
  })
}
