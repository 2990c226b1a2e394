import { Prisma } from '../../../prisma/generated/client.ts'
import { type Notice, notifyWorkflow } from '../control/workflow-outbox.ts'
import type { Deps } from '../deps.ts'
import { inShareSql } from '../run/process-lease.ts'

const GRACE_MS = 2000
const MAX_UNDER_WAY = 500

/**
 * Repeats lost notices to workflows: Temporal was unavailable, or the process died after the commit. Returns how
 * many. Meant to be called periodically; `underWay` keeps the turns whose notices still wait for Temporal, which are not
 * sent again meanwhile.
 */
export async function repeatLostNotices(deps: Deps, underWay: Set<string>): Promise<number> {
  const notices = await deps.db.$queryRaw<Notice[]>`
    SELECT id AS "turnId", organization_id AS "organizationId", finished_at IS NOT NULL AS "hasEnded", notice_due_at AS "noticeDueAt" FROM turns
    WHERE notice_due_at < now() - make_interval(secs => ${GRACE_MS / 1000}) AND ${inShareSql(deps, Prisma.sql`id`)}
      AND id <> ALL (${[...underWay]}::uuid[])
    ORDER BY notice_due_at LIMIT ${MAX_UNDER_WAY - underWay.size}`
  for (const notice of notices) {
    underWay.add(notice.turnId)
    void notifyWorkflow(deps, notice).finally(() => underWay.delete(notice.turnId))
  }
  return notices.length
}
