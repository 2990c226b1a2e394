import { warnRarely } from '../../../lib/warn-rarely.ts'
import type { Deps } from '../../deps.ts'
import { reasonStep } from '../../events/steps.ts'
import { toId } from '../../ids.ts'
import type { TurnPlace } from '../turn-place.ts'

/** Steps that one look begins at most, of each organization and in all. */
const MOST_OF_ORGANIZATION = 100
const MOST = 500
/** Time within which a step that a process has taken is claimed. Then another one may take it. */
const TAKEN_MS = 5000

/**
 * Notes that a step waits for a place, which its owner does not get here now. `unfinished`: the step is under way
 * somewhere, or the turn is over, which an activity finds out.
 */
export async function waitForPlace(
  { db }: Deps,
  { organizationId, turnId }: TurnPlace,
  iteration: number,
): Promise<'waits' | 'unfinished'> {
  const noted = await db.$executeRaw`
    INSERT INTO waiting_steps (turn_id, organization_id, iteration)
    SELECT id, organization_id, ${iteration} FROM turns
    WHERE id = ${turnId}::uuid AND organization_id = ${organizationId}::uuid AND finished_at IS NULL
      AND NOT EXISTS (SELECT FROM turn_steps WHERE turn_id = turns.id AND step = ${reasonStep(iteration)})
    ON CONFLICT (turn_id) DO UPDATE SET iteration = excluded.iteration, since = excluded.since`
  return noted === 1 ? 'waits' : 'unfinished'
}

type WaitingStep = TurnPlace & { iteration: number; since: Date }

/**
 * Begins steps that wait for a place, as far as this process has places for their owners, and notifies their workflows.
 * Each organization's oldest come first, and organizations take turns.
 */
export async function beginWaitingSteps(deps: Deps): Promise<void> {
  await deps.db.$executeRaw`
    DELETE FROM waiting_steps w USING turns t WHERE t.id = w.turn_id AND t.finished_at IS NOT NULL`
  const steps = await deps.db.$queryRaw<WaitingStep[]>`
    SELECT w.turn_id AS "turnId", t.session_id AS "sessionId", w.organization_id AS "organizationId", w.iteration, w.since
    FROM (SELECT DISTINCT organization_id AS id FROM waiting_steps) AS organization
    CROSS JOIN LATERAL (
      SELECT *, row_number() OVER (ORDER BY since) AS place FROM (
        SELECT * FROM waiting_steps WHERE organization_id = organization.id AND since <= clock_timestamp()
        ORDER BY since LIMIT ${MOST_OF_ORGANIZATION}
      ) AS oldest
    ) AS w
    JOIN turns t ON t.id = w.turn_id
    ORDER BY w.place, w.since LIMIT ${MOST}`
  const full = new Set<string>()
  for (const step of steps) {
    const owner = await deps.owners.ownerOf(step.organizationId)
    if (!full.has(owner) && !(await beginStep(deps, step, owner))) full.add(owner)
  }
}

/** Begins a step unless another process has taken it. False when this process has no place for its owner. */
async function beginStep(deps: Deps, step: WaitingStep, owner: string): Promise<boolean> {
  const { turnId, iteration, since } = step
  const place = deps.attempts.reserve(owner)
  if (place === undefined) return false
  try {
    const taken = await deps.db.$executeRaw`
      UPDATE waiting_steps SET since = clock_timestamp() + make_interval(secs => ${TAKEN_MS / 1000})
      WHERE turn_id = ${turnId}::uuid AND iteration = ${iteration} AND since = ${since}`
    if (taken === 0) return true
    const early = deps.attempts.beginWaiting(step, iteration, owner)
    early?.acknowledge()
    void notifyWhenClaimed(deps, step, early?.claimed)
    return true
  } finally {
    place.release()
  }
}

/** Tells the workflow of a step that it has been claimed. What fails here is done again, as the step is still noted. */
async function notifyWhenClaimed(deps: Deps, { turnId, iteration }: WaitingStep, claimed?: Promise<void>) {
  try {
    await claimed
    await deps.workflows.resumeTurn(turnId)
    await deps.db.$executeRaw`
      DELETE FROM waiting_steps WHERE turn_id = ${turnId}::uuid AND EXISTS (
        SELECT FROM turn_steps WHERE turn_id = ${turnId}::uuid AND step = ${reasonStep(iteration)}
      )`
  } catch (error) {
    const told = { turn: toId('turn', turnId), err: (error as Error).message }
    warnRarely(deps.log, told, 'workflow not notified of its place; the sweeper will notify it')
  }
}
