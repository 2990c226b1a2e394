import { rejectOnAbort } from '../../../lib/reject-on-abort.ts'
import { type Appended, appendEvents, type NewEvent } from '../../events/log/append.ts'
import type { Deps } from '../deps.ts'
import type { TurnPlace } from '../turn-place.ts'
import type { Attempt } from './running-attempt.ts'

type Granted = Extract<Appended, { outcome: 'appended' }>
type LostRight = Exclude<Appended['outcome'], 'appended' | 'steered'>

/**
 * Error of an attempt that may not write: a newer attempt has begun, the turn is over, an earlier turn is unfinished,
 * or the session is gone.
 */
export class RightLost extends Error {
  override name = 'RightLost'
  readonly outcome: LostRight
  constructor(outcome: LostRight) {
    super(outcome)
    this.outcome = outcome
  }
}

/** Error of the end of a turn that a message has joined which the answer has not read. */
export class Steered extends Error {
  override name = 'Steered'
}

/**
 * Appends events as this attempt of the step. Throws `RightLost` when the attempt may not write, and `Steered` instead of
 * ending a turn whose latest message is unread.
 */
export async function appendAs(
  deps: Deps,
  turn: TurnPlace,
  step: string,
  attempt: Attempt,
  events: NewEvent[],
): Promise<Granted> {
  const { sessionId, turnId } = turn
  const { fence } = attempt
  const appended = await appendEvents(deps, { sessionId, turnId, attempt: { step, fence } }, events)
  if (appended.outcome === 'fenced') {
    // An activity may have taken the attempt over meanwhile.
    await attempt.raising
    if (attempt.fence !== fence) return appendAs(deps, turn, step, attempt, events)
  }
  if (appended.outcome === 'steered') throw new Steered()
  if (appended.outcome !== 'appended') throw new RightLost(appended.outcome)
  return appended
}

/**
 * Raises the fence of a step from an attempt's in this process. Returns false when another attempt has taken the step.
 * The attempt here may not take it back: it would go on in the middle of the other's text.
 */
export async function raiseFence(
  deps: Deps,
  { sessionId, turnId }: TurnPlace,
  step: string,
  { from, to }: { from: number; to: number },
): Promise<boolean> {
  const [row] = await deps.db.$queryRaw<{ isRaised: boolean; isClaimed: boolean }[]>`
    WITH session AS (
      SELECT id FROM sessions WHERE id = ${sessionId}::uuid FOR NO KEY UPDATE
    ), raised AS (
      UPDATE turn_steps SET fence = ${to}::bigint FROM session
      WHERE turn_id = ${turnId}::uuid AND step = ${step} AND fence = ${from}::bigint
      RETURNING turn_id
    ), noted AS (
      -- Not claimed yet: the step is this process's all the same, should it die before that.
      INSERT INTO turn_steps (turn_id, step, fence, claims, process)
      SELECT ${turnId}::uuid, ${step}, ${to}::bigint, 0, ${deps.attempts.process}::bigint FROM session
      WHERE EXISTS (SELECT FROM turns WHERE id = ${turnId}::uuid AND finished_at IS NULL)
      ON CONFLICT (turn_id, step) DO NOTHING
      RETURNING turn_id
    )
    SELECT EXISTS (SELECT FROM raised) OR EXISTS (SELECT FROM noted) AS "isRaised",
      EXISTS (SELECT FROM turn_steps WHERE turn_id = ${turnId}::uuid AND step = ${step}) AS "isClaimed"`
  return row === undefined || row.isRaised || !row.isClaimed
}

/**
 * Has Temporal told of an attempt's turn, and waits until it knows. Rejects with the signal's reason when the attempt is
 * aborted.
 */
export async function waitForWorkflow({ early }: Attempt, signal: AbortSignal): Promise<void> {
  if (early === undefined || early.isKnown) return
  early.heard()
  await rejectOnAbort(signal, early.known)
}

/**
 * Runs a step of a turn. The signal of `work` also aborts when the turn is ended elsewhere, which Redis reports at once and
 * Temporal with the next heartbeat. Resolves with 'ended' when nothing more may be written. Throws when a newer attempt
 * has taken the step.
 */
export async function whileTurnRuns<T>(
  deps: Deps,
  turn: TurnPlace,
  attempt: Attempt,
  work: (live: { signal: AbortSignal }) => Promise<T>,
): Promise<T | 'ended'> {
  const ended = new AbortController()
  const unwatch = deps.events.broker.watchTurn(turn.turnId, () => ended.abort(new RightLost('turn_ended')))
  try {
    return await work({ signal: AbortSignal.any([attempt.signal, ended.signal]) })
  } catch (error) {
    if (!(error instanceof RightLost)) throw error
    // Temporal discards the result of a superseded attempt. If it does not, because a clock went back and this is the
    // newest attempt after all, the step has to be retried: only a turn that is over may be reported as ended.
    if (error.outcome === 'fenced') throw new Error('a newer attempt has taken the step')
    return 'ended'
  } finally {
    unwatch()
  }
}

/** Limit on attempts that end without reporting anything, as when their worker dies. Then the step is given up. */
const MAX_CLAIMS = 20

/** Returns whether to give the step up. `failures` counts the attempts that ended with a recorded failure. */
export const hasTooManyClaims = (claims: number, failures = 0): boolean => claims - failures > MAX_CLAIMS
