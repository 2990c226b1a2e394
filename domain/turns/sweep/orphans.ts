import type { Deps } from '../../deps.ts'
import { toId } from '../../ids.ts'
import { failTurn } from '../control/fail-turn.ts'
import type { StartedTurn } from '../turn-workflows.ts'

const PAGE = 100
const AT_ONCE = 10

type Begun = StartedTurn & { iterations: number }

/** Options of the check. A turn that began less than `graceMs` ago is skipped. */
type Reconciliation = { graceMs: number }
const DEFAULT_RECONCILIATION: Reconciliation = { graceMs: 10_000 }

/**
 * Fails turns that have begun and whose workflow is gone, because it was terminated or Temporal lost it. Checks one
 * page of turns after `cursor` and returns the next cursor, null at the end. A workflow closes only after its turn's
 * end is in the record, so one that is closed while the turn is unfinished will not come back.
 */
export async function failOrphans(
  deps: Deps,
  cursor: string | null,
  { graceMs }: Reconciliation = DEFAULT_RECONCILIATION,
): Promise<string | null> {
  const turns = await deps.db.$queryRaw<Begun[]>`
    SELECT t.id AS "turnId", t.session_id AS "sessionId", t.organization_id AS "organizationId", t.iterations,
      s.agent_id AS "agentId"
    FROM turns t JOIN sessions s ON s.id = t.session_id
    WHERE t.finished_at IS NULL AND t.status <> 'queued' AND t.started_at < now() - make_interval(secs => ${graceMs / 1000})
      AND (${cursor}::uuid IS NULL OR t.id > ${cursor}::uuid)
    ORDER BY t.id LIMIT ${PAGE}`
  for (let at = 0; at < turns.length; at += AT_ONCE) {
    await Promise.all(turns.slice(at, at + AT_ONCE).map((turn) => failOrphan(deps, turn)))
  }
  return turns.length < PAGE ? null : (turns.at(-1)?.turnId ?? null)
}

/** Fails a turn if its workflow is gone. An error is logged, so that the other turns are still checked. */
async function failOrphan(deps: Deps, turn: Begun): Promise<void> {
  const id = toId('turn', turn.turnId)
  try {
    if (await deps.workflows.isTurnRunning(turn.turnId)) return
    deps.log.warn({ turn: id }, 'workflow of an unfinished turn is gone; failing the turn')
    await failTurn(deps, turn, Math.max(1, turn.iterations), 'internal_error')
  } catch (error) {
    deps.log.warn(
      { turn: id, err: (error as Error).message },
      'turn not compared with Temporal; the next sweep will retry',
    )
  }
}
