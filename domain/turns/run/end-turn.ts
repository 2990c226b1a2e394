import type { NewEvent } from '../../events/log/append.ts'
import { startNext } from '../queue.ts'
import { appendAs, Steered } from './attempt.ts'
import { goOnWithinCaps } from './go-on.ts'
import type { ModelCall } from './model-call.ts'
import type { PricedAnswer } from './reason-events.ts'
import type { Reasoned } from './running-attempt.ts'
import { passPlaceOn } from './turn-admission.ts'
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
    return goOnWithinCaps(deps, context, iteration, { outputTokens: answer.usage.output_tokens })
  }
}
