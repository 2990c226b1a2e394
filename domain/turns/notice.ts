import type { Deps } from '../deps.ts'
import { toId } from '../ids.ts'

/** A turn whose workflow does not know yet what the record says; `noticeDueAt` is the database's time of it. */
export type Notice = { turnId: string; hasEnded: boolean; noticeDueAt: Date }

/**
 * Tells a turn's workflow that it has been cancelled, or that the results it waits for are there. Not waited for: the
 * record is what counts, and what fails here the sweeper makes good.
 */
export function tellTurnSoon(deps: Deps, notice: Notice): void {
  tellTurn(deps, notice).catch((error: Error) => {
    deps.log.warn({ turn: toId('turn', notice.turnId), err: error.message }, 'turn not told; the sweeper will')
  })
}

async function tellTurn(deps: Deps, { turnId, hasEnded, noticeDueAt }: Notice): Promise<void> {
  await (hasEnded ? deps.turns.cancelTurn(turnId) : deps.turns.resumeTurn(turnId))
  // A later notice is not this one's to clear.
  await deps.db.turn.updateMany({
    where: { id: turnId, noticeDueAt: { lte: noticeDueAt } },
    data: { noticeDueAt: null },
  })
}

const GRACE_MS = 2000
const MOST_AT_ONCE = 100

/** Tells again what was not told: Temporal was away, or the process died after the commit. */
export async function sweepNotices(deps: Deps): Promise<void> {
  const notices = await deps.db.$queryRaw<Notice[]>`
    SELECT id AS "turnId", finished_at IS NOT NULL AS "hasEnded", notice_due_at AS "noticeDueAt" FROM turns
    WHERE notice_due_at < now() - make_interval(secs => ${GRACE_MS / 1000}) ORDER BY notice_due_at LIMIT ${MOST_AT_ONCE}`
  for (const notice of notices) tellTurnSoon(deps, notice)
}
