import type { Deps } from '../../deps.ts'
import { type Appended, appendEvents, type NewEvent } from '../../events/append.ts'
import type { TurnPlace } from '../turn-place.ts'

/** One attempt at a step of a turn. */
export type Attempt = {
  /** Orders the attempts of a step: the server time in ms at which Temporal scheduled this one. */
  fence: number
  signal: AbortSignal
}

type Granted = Extract<Appended, { outcome: 'appended' }>
type LostRight = Exclude<Appended['outcome'], 'appended'>

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

/** Appends events as this attempt of the step. Throws `RightLost` when the attempt may not write. */
export async function appendAs(
  deps: Deps,
  turn: TurnPlace,
  step: string,
  attempt: Attempt,
  events: NewEvent[],
): Promise<Granted> {
  const { sessionId, turnId } = turn
  const appended = await appendEvents(deps, { sessionId, turnId, attempt: { step, fence: attempt.fence } }, events)
  if (appended.outcome !== 'appended') throw new RightLost(appended.outcome)
  return appended
}

/**
 * Runs a step of a turn. Its signal also aborts when the turn is ended elsewhere, which Redis reports at once and
 * Temporal with the next heartbeat. Resolves with 'ended' when nothing more may be written. Throws when a newer attempt
 * has taken the step.
 */
export async function whileTurnRuns<T>(
  deps: Deps,
  turn: TurnPlace,
  attempt: Attempt,
  work: (attempt: Attempt) => Promise<T>,
): Promise<T | 'ended'> {
  const ended = new AbortController()
  const unwatch = deps.events.broker.watchTurn(turn.turnId, () => ended.abort(new RightLost('turn_ended')))
  try {
    return await work({ ...attempt, signal: AbortSignal.any([attempt.signal, ended.signal]) })
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
