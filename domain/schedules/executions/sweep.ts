import { atOnce } from '../../../lib/at-once.ts'
import { Prisma } from '../../../prisma/generated/client.ts'
import { inShareSql } from '../../turns/run/process-lease.ts'
import type { StartedExecution } from '../clock/execution-workflows.ts'
import type { Deps } from '../deps.ts'
import { type ExecutionPlace, endExecution, INTERNAL_ERROR } from './end-execution.ts'

type Limits = { graceMs: number; limit: number }
const LIMITS: Limits = { graceMs: 2000, limit: 200 }
const REPEAT_MS = 10_000
const AT_ONCE = 10
/** Number of executions compared with Temporal at once. */
const PAGE = 100
const RUNNING_GRACE_MS = 10_000

/**
 * Starts executions whose start was lost, because Temporal was away or the process died. If the workflow closed before
 * the execution began, it was ended in Temporal, and the execution fails. `swept` keeps the time of each attempt, so
 * that a busy worker is not asked every time. Returns how many were lost.
 */
export async function startLostExecutions(deps: Deps, swept: Map<string, number>, { graceMs, limit } = LIMITS) {
  const now = performance.now()
  for (const [id, at] of swept) if (now - at > REPEAT_MS) swept.delete(id)
  const lost = await deps.db.$queryRaw<StartedExecution[]>`
    SELECT e.id AS "executionId", e.schedule_id AS "scheduleId", e.organization_id AS "organizationId",
      CASE WHEN s.target_type = 'workflow' THEN coalesce(s.session_id, e.id) END AS "sessionId",
      s.target_name AS "targetName", e.scheduled_at AS "scheduledAt"
    FROM schedule_executions e JOIN schedules s ON s.id = e.schedule_id
    WHERE e.status = 'pending' AND e.created_at < now() - make_interval(secs => ${graceMs / 1000})
      AND e.id <> ALL (${[...swept.keys()]}::uuid[]) AND ${inShareSql(deps, Prisma.sql`e.id`)}
    ORDER BY e.created_at LIMIT ${limit}`
  await atOnce(lost, AT_ONCE, async (execution) => {
    swept.set(execution.executionId, now)
    const owner = await deps.owners.ownerOf(execution.organizationId)
    if (await deps.workflows.startExecution(execution, owner)) return
    await failGone(deps, execution)
  })
  return lost.length
}

type Notice = { executionId: string; noticeDueAt: Date }

/** Notifies the workflows of executions whose turns have ended. Returns how many. */
export async function notifyEndedTurns(deps: Deps): Promise<number> {
  const notices = await deps.db.$queryRaw<Notice[]>`
    SELECT id AS "executionId", notice_due_at AS "noticeDueAt" FROM schedule_executions
    WHERE notice_due_at IS NOT NULL AND ${inShareSql(deps, Prisma.sql`id`)} ORDER BY notice_due_at LIMIT ${LIMITS.limit}`
  await atOnce(notices, AT_ONCE, async ({ executionId, noticeDueAt }) => {
    await deps.workflows.notifyExecution(executionId)
    await deps.db.scheduleExecution.updateMany({ where: { id: executionId, noticeDueAt }, data: { noticeDueAt: null } })
  })
  return notices.length
}

/**
 * Fails executions that have begun and whose workflow is gone, because it was terminated or Temporal lost it. An
 * execution with a turn ends with the turn. Checks one page after `cursor`. Returns the next cursor, null at the end,
 * and the number of executions whose workflow was gone.
 */
export async function failLostExecutions(deps: Deps, cursor: string | null, graceMs = RUNNING_GRACE_MS) {
  const running = await deps.db.$queryRaw<ExecutionPlace[]>`
    SELECT e.id AS "executionId", e.organization_id AS "organizationId" FROM schedule_executions e
    WHERE e.status = 'running' AND e.started_at < now() - make_interval(secs => ${graceMs / 1000})
      AND (${cursor}::uuid IS NULL OR e.id > ${cursor}::uuid) AND ${inShareSql(deps, Prisma.sql`e.id`)}
      AND NOT EXISTS (SELECT FROM turns WHERE id = e.id)
    ORDER BY e.id LIMIT ${PAGE}`
  let found = 0
  await atOnce(running, AT_ONCE, async (execution) => {
    if (await deps.workflows.isExecutionRunning(execution.executionId)) return
    found++
    await failGone(deps, execution)
  })
  return { cursor: running.length < PAGE ? null : (running.at(-1)?.executionId ?? null), found }
}

async function failGone(deps: Deps, place: ExecutionPlace): Promise<void> {
  // It may have ended since it was read.
  if (!(await endExecution(deps, place, INTERNAL_ERROR))) return
  deps.log.warn({ execution: place.executionId }, 'workflow of an unfinished execution was gone; the execution failed')
}
