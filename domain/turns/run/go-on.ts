import type { Deps } from '../deps.ts'
import { findReachedCap } from './reached-cap.ts'
import type { Reasoned } from './running-attempt.ts'
import type { TurnContext } from './turn-context.ts'

/** Outcome of an answered step whose turn makes another model call. There is nothing to run before. */
export const goOn = ({ model }: TurnContext): Reasoned => ({
  outcome: 'act',
  model: model?.name ?? '',
  runs: [],
  asks: false,
})

/**
 * Lets a turn make another model call after an answer without calls, unless it has reached a cap. `made` is the answer's
 * part of the usage, if the record of the context does not have the answer yet.
 */
export async function goOnWithinCaps(
  deps: Deps,
  context: TurnContext,
  iteration: number,
  made?: { outputTokens: number },
): Promise<Reasoned> {
  const cap = await findReachedCap(deps, context, iteration, made && { toolCalls: 0, ...made })
  return cap === undefined ? goOn(context) : { outcome: 'failed', code: cap.code }
}
