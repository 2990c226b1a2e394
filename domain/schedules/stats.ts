import type { ScheduleId } from '../../contract/kit/ids.ts'
import type { ExecutionStatus, ScheduleStats } from '../../contract/schedules.ts'
import type { Actor } from '../kit/actor.ts'
import type { Deps } from './deps.ts'
import { requireSchedule } from './read.ts'

/** Counts a schedule's stored executions. Throws `not_found`. */
export async function readStats(deps: Deps, actor: Actor, id: ScheduleId): Promise<ScheduleStats> {
  const { id: scheduleId } = await requireSchedule(deps, actor, id)
  const [counts, last] = await Promise.all([
    deps.db.scheduleCount.findMany({ where: { scheduleId } }),
    deps.db.scheduleExecution.findFirst({ where: { scheduleId }, orderBy: { id: 'desc' }, select: { status: true } }),
  ])
  const countOf = (...statuses: ExecutionStatus[]): number =>
    counts.filter(({ status }) => statuses.includes(status)).reduce((sum, { count }) => sum + count, 0)
  const ended = countOf('completed', 'failed')
  const durationMs = counts
    .filter(({ status }) => status === 'completed' || status === 'failed')
    .reduce((sum, { durationMs }) => sum + Number(durationMs), 0)
  return {
    total_executions: countOf('pending', 'running', 'completed', 'failed', 'skipped'),
    successful_executions: countOf('completed'),
    failed_executions: countOf('failed'),
    skipped_executions: countOf('skipped'),
    avg_duration_ms: ended === 0 ? null : Math.round(durationMs / ended),
    last_execution_status: last?.status ?? null,
  }
}
