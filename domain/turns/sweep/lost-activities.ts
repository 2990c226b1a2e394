import { atOnce } from '../../../lib/at-once.ts'
import { warnRarely } from '../../../lib/warn-rarely.ts'
import { toId } from '../../kit/ids.ts'
import type { Deps } from '../deps.ts'
import { isDead, LEASE_MS, leaveDead, takeDead } from '../run/process-lease.ts'

const AT_ONCE = 16
/** Turns without a step that Temporal is asked about: a dead process may have been given their first one. */
const MAX_UNBEGUN = 50

type RunHere = { id: string; kind: 'turn' | 'unbegun' | 'execution' }

/**
 * Reports to Temporal the activities that have died with their process. Missing heartbeats would report them too, but
 * some only after minutes: heartbeats are rare where a process may run thousands of activities. Returns the number of
 * turns and executions.
 */
export async function releaseDeadProcesses(deps: Deps): Promise<number> {
  let released = 0
  for (const number of await takeDead(deps)) {
    const running = await deps.db.$queryRaw<RunHere[]>`
      SELECT DISTINCT t.id, 'turn' AS kind FROM turns t JOIN turn_steps s ON s.turn_id = t.id AND s.process = ${number}::bigint
      WHERE t.finished_at IS NULL AND t.status <> 'waiting'
      UNION ALL
      SELECT id, 'execution' FROM schedule_executions WHERE status = 'running' AND process = ${number}::bigint
      UNION ALL
      -- It may have been given their first steps, and have died before it claimed them.
      (SELECT t.id, 'unbegun' FROM turns t JOIN processes p ON p.number = ${number}::bigint
      WHERE t.status = 'queued' AND t.finished_at IS NULL AND t.admission IS DISTINCT FROM 'waits'
        AND t.created_at < least(p.ended_at + make_interval(secs => ${LEASE_MS / 1000}), now() - interval '1 second')
        AND NOT EXISTS (SELECT FROM waiting_steps WHERE turn_id = t.id)
        AND NOT EXISTS (
          SELECT FROM turns earlier
          WHERE earlier.session_id = t.session_id AND earlier.finished_at IS NULL
            AND earlier.input_sequence < t.input_sequence
        )
      ORDER BY t.created_at LIMIT ${MAX_UNBEGUN})`
    let failed = 0
    await atOnce(running, AT_ONCE, async (run) => {
      await release(deps, run, number).catch((error: Error) => {
        failed++
        warnRarely(deps.log, { err: error.message }, 'activities of a dead process not released; they will be')
      })
    })
    await leaveDead(deps, number, failed === 0)
    released += running.length
    if (running.length > 0) deps.log.warn({ process: number, count: running.length }, 'took over from a dead process')
  }
  return released
}

async function release(deps: Deps, { id, kind }: RunHere, number: number): Promise<void> {
  const workflowId = kind === 'execution' ? id : toId('turn', id)
  // Temporal may have given its activities to others that have died before they claimed the step.
  const isReleased = await deps.workflows.releaseActivities(workflowId, (process) => isDead(deps, process))
  // Its attempt may have begun while the workflow waited for a place.
  if (!isReleased && kind === 'turn') await deps.workflows.resumeTurn(id, `process ${number}`)
}

/**
 * Reports to Temporal the expected activities that have not come to attempts of this process: an answer of Temporal was
 * lost on its way. Returns how many.
 */
export async function releaseLostActivities(deps: Deps): Promise<number> {
  const lost = [...deps.attempts.unattended()]
  await atOnce(lost, AT_ONCE, async (turnId) => {
    const isLost = async (process: number) => process === deps.attempts.process && deps.attempts.isUnattended(turnId)
    await deps.workflows.releaseActivities(toId('turn', turnId), isLost, 'reason')
  })
  return lost.length
}
