import { atOnce } from '../../../lib/at-once.ts'
import { Prisma } from '../../../prisma/generated/client.ts'
import { reasonStep } from '../../events/log/steps.ts'
import { toId } from '../../kit/ids.ts'
import { failTurn } from '../control/fail-turn.ts'
import type { Deps } from '../deps.ts'
import { inShareSql, livesSql } from '../run/process-lease.ts'
import { startTurnSoon } from '../start.ts'
import type { StartedTurn } from '../turn-workflows.ts'

const PAGE = 100
/** Numbers of turns compared at once: turns that probably have no workflow, and all others, which hardly ever lack one. */
const AT_ONCE = 10
const IN_PASSING = 2

type Begun = StartedTurn & { iterations: number }

/** Options of the check. A turn that began less than `graceMs` ago is skipped. */
type Reconciliation = { graceMs: number }
const DEFAULT_RECONCILIATION: Reconciliation = { graceMs: 10_000 }

/**
 * Fails begun turns whose workflow has closed because it was terminated, and starts turns that Temporal does not know.
 * Checks one page of turns after `cursor`. Returns the next cursor, null at the end, and the number of turns that it
 * failed or started. A workflow closes only after its turn's end is in the record, so the closed workflow of an unfinished
 * turn will not come back.
 */
export async function failOrphans(
  deps: Deps,
  cursor: string | null,
  { graceMs }: Reconciliation = DEFAULT_RECONCILIATION,
): Promise<{ cursor: string | null; found: number }> {
  const turns = await deps.db.$queryRaw<Begun[]>`
    SELECT t.id AS "turnId", t.session_id AS "sessionId", t.organization_id AS "organizationId", t.iterations,
      s.agent_id AS "agentId"
    FROM turns t JOIN sessions s ON s.id = t.session_id
    WHERE t.finished_at IS NULL AND t.status <> 'queued' AND t.started_at < now() - make_interval(secs => ${graceMs / 1000})
      AND (${cursor}::uuid IS NULL OR t.id > ${cursor}::uuid) AND ${inShareSql(deps, Prisma.sql`t.id`)}
    ORDER BY t.id LIMIT ${PAGE}`
  const found = await compareAll(deps, turns, IN_PASSING)
  return { cursor: turns.length < PAGE ? null : (turns.at(-1)?.turnId ?? null), found }
}

const EARLY_GRACE_MS = 3000
const EARLY_REPEAT_MS = 10_000
/** Time within which a living process starts the workflow itself, in its owner's turn. */
const STARTS_ITSELF_MS = 60_000

/**
 * Does the same with turns that have begun early and that no activity has taken over by now. Most of them have no
 * workflow, because their process could not start it or died before. `compared` keeps the time of each turn's comparison.
 */
export async function startLostEarlyTurns(deps: Deps, compared: Map<string, number>): Promise<number> {
  const now = performance.now()
  for (const [id, at] of compared) if (now - at > EARLY_REPEAT_MS) compared.delete(id)
  const turns = await deps.db.$queryRaw<Begun[]>`
    SELECT t.id AS "turnId", t.session_id AS "sessionId", t.organization_id AS "organizationId", t.iterations,
      s.agent_id AS "agentId"
    FROM turns t JOIN turn_steps p ON p.turn_id = t.id AND p.step = ${reasonStep(1)} AND p.fence < 0
    JOIN sessions s ON s.id = t.session_id
    WHERE t.finished_at IS NULL AND t.status = 'active' AND t.iterations = 1
      AND t.started_at < now() - make_interval(secs => ${EARLY_GRACE_MS / 1000})
      AND (t.started_at < now() - make_interval(secs => ${STARTS_ITSELF_MS / 1000}) OR NOT ${livesSql(Prisma.sql`p.process`)})
      AND t.id <> ALL (${[...compared.keys()]}::uuid[]) AND ${inShareSql(deps, Prisma.sql`t.id`)}
      AND NOT EXISTS (SELECT FROM events WHERE turn_id = t.id AND type = 'reason.completed' AND step = p.step)
    ORDER BY t.started_at LIMIT ${PAGE}`
  for (const { turnId } of turns) compared.set(turnId, now)
  return compareAll(deps, turns, AT_ONCE)
}

async function compareAll(deps: Deps, turns: Begun[], most: number): Promise<number> {
  let found = 0
  await atOnce(turns, most, async (turn) => {
    if (await compareWithTemporal(deps, turn)) found++
  })
  return found
}

/**
 * Fails a turn if its workflow has closed, or starts it; false if neither was needed. An error is logged, so that the
 * other turns are still checked.
 */
async function compareWithTemporal(deps: Deps, turn: Begun): Promise<boolean> {
  const id = toId('turn', turn.turnId)
  try {
    const state = await deps.workflows.readTurnState(turn.turnId)
    if (state === 'running') return false
    if (state === 'unknown') {
      deps.log.warn({ turn: id }, 'Temporal has no workflow of an unfinished turn; starting it')
      startTurnSoon(deps, turn)
      return true
    }
    // Most have ended since they were read.
    const outcome = await failTurn(deps, turn, Math.max(1, turn.iterations), 'internal_error')
    if (outcome === 'failed') deps.log.warn({ turn: id }, 'turn failed, because its workflow had closed before its end')
    return outcome === 'failed'
  } catch (error) {
    deps.log.warn(
      { turn: id, err: (error as Error).message },
      'turn not compared with Temporal; the next sweep will retry',
    )
    return false
  }
}
