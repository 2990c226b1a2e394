import type { TurnInput } from '../../../workflows/messages.ts'
import type { Deps } from '../../deps.ts'
import { type Appended, appendEvents, type NewEvent } from '../../events/append.ts'

/** One run of one step of a turn. */
export type Attempt = {
  /** Orders the attempts of a step: the server time at which Temporal scheduled this one. */
  fence: number
  signal: AbortSignal
}

type Granted = Extract<Appended, { outcome: 'appended' }>
type LostRight = Exclude<Appended['outcome'], 'appended'>

/** The attempt may not write: a newer one has begun, the turn is over, or it is not its turn yet. */
export class RightLost extends Error {
  override name = 'RightLost'
  readonly outcome: LostRight
  constructor(outcome: LostRight) {
    super(outcome)
    this.outcome = outcome
  }
}

/** Appends as this attempt of the step. Throws RightLost. */
export async function appendAs(
  deps: Deps,
  turn: TurnInput,
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
 * Runs a step of a turn; its signal also aborts when the turn is ended by somebody else, which Redis tells at once and
 * Temporal by the next heartbeat. Resolves with 'ended' when nothing more may be written.
 */
export async function whileTurnRuns<T>(
  deps: Deps,
  turn: TurnInput,
  attempt: Attempt,
  work: (attempt: Attempt) => Promise<T>,
): Promise<T | 'ended'> {
  const ended = new AbortController()
  const unwatch = deps.events.broker.watchTurn(turn.turnId, () => ended.abort(new RightLost('turn_ended')))
  try {
    return await work({ ...attempt, signal: AbortSignal.any([attempt.signal, ended.signal]) })
  } catch (error) {
    if (!(error instanceof RightLost)) throw error
    // Temporal discards what a superseded attempt says. Should it not, because a clock went back and this is the newest
    // attempt after all, then it has to be tried again: only a turn that is over may be reported as such.
    if (error.outcome === 'fenced') throw new Error('a newer attempt has taken the step')
    return 'ended'
  } finally {
    unwatch()
  }
}

/** An attempt that ends without a word has taken its worker with it; a step that does so each time is given up. */
const MAX_CLAIMS = 20

/** `failures`: attempts that ended with a recorded failure. */
export const hasTooManyClaims = (claims: number, failures = 0): boolean => claims - failures > MAX_CLAIMS
