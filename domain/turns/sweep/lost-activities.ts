import { atOnce } from '../../../lib/at-once.ts'
import type { Deps } from '../../deps.ts'
import { toId } from '../../ids.ts'
import { forgetDead, takeDead } from '../run/process-lease.ts'

const AT_ONCE = 16

type RunHere = { id: string; kind: 'turn' | 'execution' }

/**
 * Tells Temporal of the activities that have died with their process. A missing heartbeat would tell it, too, but only
 * after minutes: heartbeats are rare, because a process may run thousands of activities.
 */
export async function releaseDeadProcesses(deps: Deps): Promise<void> {
  for (const number of await takeDead(deps)) {
    const running = await deps.db.$queryRaw<RunHere[]>`
      SELECT DISTINCT t.id, 'turn' AS kind FROM turns t JOIN turn_steps s ON s.turn_id = t.id AND s.process = ${number}::bigint
      WHERE t.finished_at IS NULL AND t.status = 'active'
      UNION ALL
      SELECT id, 'execution' FROM schedule_executions WHERE status = 'running' AND process = ${number}::bigint`
    await atOnce(running, AT_ONCE, async ({ id, kind }) => {
      const workflowId = kind === 'turn' ? toId('turn', id) : id
      const isReleased = await deps.workflows.releaseActivities(workflowId, number)
      // Its attempt may have begun while the workflow waited for a place.
      if (!isReleased && kind === 'turn') await deps.workflows.resumeTurn(id)
    })
    await forgetDead(deps, number)
    if (running.length > 0) deps.log.warn({ process: number, count: running.length }, 'took over from a dead process')
  }
}

/**
 * Tells Temporal of activities that were to come for attempts of this process and that have not come: an answer of
 * Temporal that was lost on its way.
 */
export const releaseLostActivities = (deps: Deps): Promise<void> =>
  atOnce(deps.attempts.unattended(), AT_ONCE, async (turnId) => {
    await deps.workflows.releaseActivities(toId('turn', turnId), deps.attempts.process)
  })
