import { Prisma } from '../../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { inShareSql } from '../run/process-lease.ts'
import { startTurnSoon } from '../start.ts'
import type { StartedTurn } from '../turn-workflows.ts'
import { IS_NEXT } from './is-next.ts'

type Sweep = { graceMs: number; repeatMs: number; limit: number }
const DEFAULT_SWEEP: Sweep = { graceMs: 2000, repeatMs: 10_000, limit: 200 }

/**
 * Starts turns whose own start was lost: Temporal was unavailable when the message was posted, or the process died
 * between the transaction and the start, or between a turn's end and the start of the next. Returns how many it tried.
 * Meant to be called periodically; `swept` keeps the time at which each turn was tried, so that a busy worker is not
 * asked each time. A turn by which an agent answers another is started by that one's workflow.
 */
export async function startLostTurns(
  deps: Deps,
  swept: Map<string, number>,
  { graceMs, repeatMs, limit }: Sweep = DEFAULT_SWEEP,
): Promise<number> {
  const now = performance.now()
  for (const [id, at] of swept) if (now - at > repeatMs) swept.delete(id)
  const heads = await deps.db.$queryRaw<StartedTurn[]>`
    SELECT t.id AS "turnId", t.session_id AS "sessionId", t.organization_id AS "organizationId", s.agent_id AS "agentId"
    FROM turns t JOIN sessions s ON s.id = t.session_id
    WHERE t.status = 'queued' AND t.ancestors IS NULL AND t.created_at < now() - make_interval(secs => ${graceMs / 1000})
      AND t.id <> ALL (${[...swept.keys()]}::uuid[]) AND ${inShareSql(deps, Prisma.sql`t.id`)}
      AND NOT EXISTS (SELECT FROM waiting_steps WHERE turn_id = t.id)
      AND ${IS_NEXT}
      AND coalesce((
        SELECT finished_at FROM turns before
        WHERE before.session_id = t.session_id AND before.input_sequence < t.input_sequence
        ORDER BY before.input_sequence DESC LIMIT 1
      ) < now() - make_interval(secs => ${graceMs / 1000}), true)
    ORDER BY t.created_at LIMIT ${limit}`
  for (const turn of heads) {
    swept.set(turn.turnId, now)
    startTurnSoon(deps, turn)
  }
  return heads.length
}
