import type { TurnInput } from '../../workflows/messages.ts'
import type { Deps } from '../deps.ts'
import { startTurnSoon } from './start.ts'

/** The turn at the head of a session's queue if it still has to be started; null when another one runs or none waits. */
export async function nextTurn(deps: Deps, sessionId: string): Promise<string | null> {
  const head = await deps.db.turn.findFirst({
    where: { sessionId, finishedAt: null },
    orderBy: { inputSequence: 'asc' },
    select: { id: true, status: true },
  })
  return head?.status === 'queued' ? head.id : null
}

type Sweep = { graceMs: number; repeatMs: number; limit: number }
const DEFAULT_SWEEP: Sweep = { graceMs: 2000, repeatMs: 10_000, limit: 200 }

/**
 * Starts the turns whose own start was lost: Temporal was away when the message was posted, or the process died
 * between the transaction and the start, or between a turn's end and the start of the next.
 * Call it again and again; `swept` remembers when each turn was tried, so that a busy worker is not asked each time.
 */
export async function sweepTurns(
  deps: Deps,
  swept: Map<string, number>,
  { graceMs, repeatMs, limit }: Sweep = DEFAULT_SWEEP,
): Promise<number> {
  const now = Date.now()
  for (const [id, at] of swept) if (now - at > repeatMs) swept.delete(id)
  const heads = await deps.db.$queryRaw<TurnInput[]>`
    SELECT id AS "turnId", session_id AS "sessionId", organization_id AS "organizationId" FROM (
      SELECT DISTINCT ON (session_id) id, session_id, organization_id, status, created_at FROM turns
      WHERE finished_at IS NULL ORDER BY session_id, input_sequence
    ) AS head
    WHERE status = 'queued' AND created_at < now() - make_interval(secs => ${graceMs / 1000})
      AND id <> ALL (${[...swept.keys()]}::uuid[])
    ORDER BY created_at LIMIT ${limit}`
  for (const turn of heads) {
    swept.set(turn.turnId, now)
    startTurnSoon(deps, turn)
  }
  return heads.length
}
