import { warnRarely } from '../../../lib/warn-rarely.ts'
import { Prisma } from '../../../prisma/generated/client.ts'
import { reasonStep, stepSql } from '../../events/log/steps.ts'
import { toId } from '../../kit/ids.ts'
import type { Deps } from '../deps.ts'
import type { TurnPlace } from '../turn-place.ts'

/** Maximum number of steps that one look begins, of each owner and in all. */
const MAX_PER_OWNER = 100
const MAX_STEPS = 500
/** Time in which a process claims a step that it has taken. Later, another process may take the step. */
const TAKEN_MS = 5000
/** Waiting steps, with their turns, organizations and owners, as in domain/kit/owners.ts. */
const STEPS_OF_OWNERS = Prisma.sql`
  waiting_steps w JOIN turns t ON t.id = w.turn_id JOIN organizations o ON o.id = t.organization_id`
const OWNER = Prisma.sql`coalesce(o.owner_id, o.id)`

/**
 * Notes that a step waits for a place: its owner gets none here now, or as many turns run as may. `unfinished`: the step is under way
 * somewhere, or the turn is over; an activity finds out which.
 */
export async function waitForPlace(
  { db }: Deps,
  { organizationId, turnId }: TurnPlace,
  iteration: number,
): Promise<'waits' | 'unfinished'> {
  const noted = await db.$executeRaw`
    INSERT INTO waiting_steps (turn_id, iteration)
    SELECT id, ${iteration} FROM turns
    WHERE id = ${turnId}::uuid AND organization_id = ${organizationId}::uuid AND finished_at IS NULL
      AND NOT EXISTS (SELECT FROM turn_steps WHERE turn_id = turns.id AND step = ${reasonStep(iteration)})
    ON CONFLICT (turn_id) DO UPDATE SET iteration = excluded.iteration, since = CASE
      WHEN waiting_steps.iteration = excluded.iteration THEN least(waiting_steps.since, excluded.since)
      ELSE excluded.since END`
  return noted === 1 ? 'waits' : 'unfinished'
}

type WaitingStep = TurnPlace & { iteration: number; since: Date; owner: string }

/**
 * Begins steps that wait for a place, while this process has places for their owners, and notifies their workflows.
 * Each owner's oldest come first, and owners take turns. Returns how many steps waited.
 */
export async function beginWaitingSteps(deps: Deps): Promise<number> {
  await notifySettled(deps)
  const steps = await deps.db.$queryRaw<WaitingStep[]>`
    SELECT * FROM (
      SELECT w.turn_id AS "turnId", t.session_id AS "sessionId", t.organization_id AS "organizationId", w.iteration,
        w.since, ${OWNER}::text AS owner, row_number() OVER (PARTITION BY ${OWNER} ORDER BY w.since) AS place
      FROM ${STEPS_OF_OWNERS} WHERE w.since <= clock_timestamp() AND t.admission IS DISTINCT FROM 'waits'
    ) AS step WHERE place <= ${MAX_PER_OWNER} ORDER BY place, since LIMIT ${MAX_STEPS}`
  const full = new Set<string>()
  for (const step of steps) {
    if (!full.has(step.owner) && !(await beginStep(deps, step))) full.add(step.owner)
  }
  deps.attempts.letWait(full)
  return steps.length
}

/**
 * Begins steps of turns that may run from now on, without waiting for their model. Where this process has no place, or the
 * step is not noted yet, the workflow begins it.
 */
export async function beginAdmitted(deps: Deps, turnIds: string[]): Promise<void> {
  if (turnIds.length === 0) return
  const steps = await deps.db.$queryRaw<WaitingStep[]>`
    SELECT t.id AS "turnId", t.session_id AS "sessionId", t.organization_id AS "organizationId",
      coalesce(w.iteration, 0) AS iteration, coalesce(w.since, now()) AS since, ${OWNER}::text AS owner
    FROM turns t JOIN organizations o ON o.id = t.organization_id LEFT JOIN waiting_steps w ON w.turn_id = t.id
    WHERE t.id = ANY (${turnIds}::uuid[]) ORDER BY t.created_at, t.id`
  for (const step of steps) {
    const isNoted = step.iteration > 0
    if (!isNoted || !(await beginStep(deps, step))) void notifyWhenClaimed(deps, step)
  }
}

/** Notifies workflows that do not know that their step was claimed or their turn has ended. */
async function notifySettled(deps: Deps): Promise<void> {
  await deps.db.$executeRaw`
    DELETE FROM waiting_steps w USING turns t WHERE t.id = w.turn_id AND t.status = 'cancelled'`
  const settled = await deps.db.$queryRaw<StepToNotify[]>`
    SELECT w.turn_id AS "turnId", w.iteration, ${OWNER}::text AS owner FROM ${STEPS_OF_OWNERS}
    WHERE w.since <= clock_timestamp() AND (t.finished_at IS NOT NULL OR EXISTS (
      SELECT FROM turn_steps WHERE turn_id = w.turn_id AND step = ${stepSql.reason(Prisma.sql`w.iteration`)}
    )) LIMIT ${MAX_STEPS}`
  for (const step of settled) void notifyWhenClaimed(deps, step)
}

/** Begins a step unless another process has taken it. False when this process has no place for its owner. */
async function beginStep(deps: Deps, step: WaitingStep): Promise<boolean> {
  const { turnId, iteration, since, owner } = step
  const release = deps.attempts.reserveWaiting(owner)
  if (release === undefined) return false
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
    release()
  }
}

type StepToNotify = Pick<WaitingStep, 'turnId' | 'iteration' | 'owner'>

/**
 * Notifies a step's workflow that the step has been claimed. A failure is made good later, because the step is still
 * noted.
 */
async function notifyWhenClaimed(
  deps: Deps,
  { turnId, iteration, owner }: StepToNotify,
  claimed?: Promise<void>,
): Promise<void> {
  try {
    await claimed
    await deps.workflows.resumeTurn(turnId, owner)
    await deps.db.$executeRaw`
      DELETE FROM waiting_steps WHERE turn_id = ${turnId}::uuid AND iteration = ${iteration} AND EXISTS (
        SELECT FROM turns t LEFT JOIN turn_steps s ON s.turn_id = t.id AND s.step = ${reasonStep(iteration)}
        WHERE t.id = ${turnId}::uuid AND (t.finished_at IS NOT NULL OR s.turn_id IS NOT NULL)
      )`
  } catch (error) {
    const logFields = { turn: toId('turn', turnId), err: (error as Error).message }
    warnRarely(deps.log, logFields, 'workflow not notified of its place; the sweeper will notify it')
  }
}
