import type { Deps } from '../conversation/deps.ts'

/** Counts the enabled schedules that target each session. Sessions without any are absent from the result. */
export async function countActiveSchedules(deps: Deps, sessionIds: string[]): Promise<Map<string, number>> {
  const rows = await deps.db.schedule.groupBy({
    by: ['sessionId'],
    where: { sessionId: { in: sessionIds }, enabled: true, deletedAt: null },
    _count: true,
  })
  return new Map(rows.flatMap(({ sessionId, _count }) => (sessionId === null ? [] : [[sessionId, _count]])))
}
