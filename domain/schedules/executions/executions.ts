import type { ExecutionId, ScheduleId } from '../../../contract/kit/ids.ts'
import type { ExecutionStatus, ScheduleExecution } from '../../../contract/schedules.ts'
import type { ScheduleExecution as ExecutionRow } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { notFound } from '../../kit/errors.ts'
import { type Counted, type PageStart, pages } from '../../kit/lists.ts'
import type { Deps } from '../deps.ts'
import { presentExecution } from '../present.ts'
import { requireSchedule } from '../read.ts'

const EXECUTIONS_AT_ONCE = 100

/** Lists the executions of a schedule, newest first. Throws `not_found`. */
export async function listExecutions(
  deps: Deps,
  actor: Actor,
  id: ScheduleId,
  { status, limit, offset }: { status?: ExecutionStatus | undefined; limit: number; offset: number },
): Promise<Counted<ScheduleExecution>> {
  const { id: scheduleId } = await requireSchedule(deps, actor, id)
  const { _sum } = await deps.db.scheduleCount.aggregate({ where: { scheduleId, status }, _sum: { count: true } })
  const read = async ({ after, skip, take }: PageStart<ExecutionRow>) => {
    const rows = await deps.db.scheduleExecution.findMany({
      where: { scheduleId, status, id: { lt: after?.id } },
      orderBy: { id: 'desc' },
      skip,
      take,
    })
    return { rows, hasMore: rows.length === take }
  }
  const present = (rows: ExecutionRow[]) => presentExecutions(deps, rows)
  return {
    pages: pages({ read, present, atOnce: EXECUTIONS_AT_ONCE, offset, limit }),
    total: _sum.count ?? 0,
    ...{ offset, limit },
  }
}

/** Returns an execution, also of a deleted schedule. Throws `not_found`. */
export async function getExecution(deps: Deps, { organizationId }: Actor, id: ExecutionId): Promise<ScheduleExecution> {
  const row = await deps.db.scheduleExecution.findFirst({ where: { id, organizationId } })
  if (row === null) throw notFound('Execution')
  const [execution] = await presentExecutions(deps, [row])
  if (execution === undefined) throw notFound('Execution')
  return execution
}

/**
 * Presents executions with the sessions of their turns, which have the executions' ids. Deleted sessions are left out.
 */
async function presentExecutions({ db }: Deps, rows: ExecutionRow[]): Promise<ScheduleExecution[]> {
  const turns = await db.turn.findMany({
    where: { id: { in: rows.map(({ id }) => id) } },
    select: { id: true, sessionId: true },
  })
  const sessions = new Map(turns.map(({ id, sessionId }) => [id, sessionId]))
  return rows.map((row) => presentExecution(row, sessions.get(row.id)))
}
