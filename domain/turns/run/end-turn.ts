import type { NewEvent } from '../../events/log/append.ts'
import { startNext } from '../queue.ts'
import { appendAs, Steered } from './attempt.ts'
import type { ModelCall } from './model-call.ts'
import { findReachedCap } from './reached-cap.ts'
import type { PricedAnswer } from './reason-events.ts'
import type { Reasoned } from './running-attempt.ts'
import { passPlaceOn } from './turn-admission.ts'
import type { TurnContext } from './turn-context.ts'
import { endOf, turnEndedEvents, turnReport } from './turn-events.ts'

/** Records an answer without calls, and with it the turn's end, unless a message has joined the turn that it has not read. */
export async function endTurn(
  call: ModelCall,
  answered: NewEvent[],
  answer: PricedAnswer,
  { startedAt, output }: { startedAt: Date; output: ReturnType<typeof endOf>['output'] },
): Promise<Reasoned> {
  const { deps, context, iteration, step, attempt } = call
  const append = (events: NewEvent[]) => appendAs(deps, context, step, attempt, events)
  const ended = endOf({ ...context, startedAt }, iteration, answer, output)
  try {
    const { nextTurnId } = await append([...answered, ...turnEndedEvents(context, ended)])
    startNext(deps, context, nextTurnId, 'early')
    passPlaceOn(deps, context)
    return { outcome: 'answered', report: turnReport(call, answer, ended) }
  } catch (error) {
    if (!(error instanceof Steered)) throw error
    await append(answered)
    const cap = await findReachedCap(deps, context, iteration, {
      toolCalls: 0,
      outputTokens: answer.usage.output_tokens,
    })
    return cap === undefined ? goOn(context) : { outcome: 'failed', code: cap.code }
  }
}

/** Outcome of an answered step whose turn goes on with another model call, because it has an unread message. */
export const goOn = ({ model }: TurnContext): Reasoned => ({
  outcome: 'act',
  model: model?.name ?? '',
  runs: [],
  asks: false,
})
