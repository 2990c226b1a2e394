import type { Deps } from '../../deps.ts'
import { type Notice, notifyWorkflow } from '../control/workflow-outbox.ts'

const GRACE_MS = 2000
const MOST_AT_ONCE = 500

/** Repeats lost notices to workflows: Temporal was unavailable, or the process died after the commit. */
export async function repeatLostNotices(deps: Deps): Promise<void> {
  const notices = await deps.db.$queryRaw<Notice[]>`
    SELECT id AS "turnId", organization_id AS "organizationId", finished_at IS NOT NULL AS "hasEnded", notice_due_at AS "noticeDueAt" FROM turns
    WHERE notice_due_at < now() - make_interval(secs => ${GRACE_MS / 1000}) ORDER BY notice_due_at LIMIT ${MOST_AT_ONCE}`
  for (const notice of notices) notifyWorkflow(deps, notice)
}
