import { Prisma } from '../../../prisma/generated/client.ts'
import { cancelOwnTurn } from '../control/cancel.ts'
import type { Deps } from '../deps.ts'
import { inShareSql } from '../run/process-lease.ts'
import type { TurnPlace } from '../turn-place.ts'

const LIMIT = 100

/**
 * Cancels turns that answer a call of a turn that has ended. Temporal cancels most of them with the caller's workflow; the
 * others were recorded and not started yet. Returns their number.
 */
export async function cancelLeftChildren(deps: Deps): Promise<number> {
  const turns = await deps.db.$queryRaw<TurnPlace[]>`
    SELECT t.id AS "turnId", t.session_id AS "sessionId", t.organization_id AS "organizationId" FROM turns t
    WHERE t.ancestors IS NOT NULL AND t.finished_at IS NULL AND ${inShareSql(deps, Prisma.sql`t.id`)} AND NOT EXISTS (
      SELECT FROM turns p WHERE p.id = t.ancestors[array_upper(t.ancestors, 1)] AND p.finished_at IS NULL
    ) LIMIT ${LIMIT}`
  for (const turn of turns) await cancelOwnTurn(deps, turn)
  return turns.length
}
