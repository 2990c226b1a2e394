import type { ModelInput } from '../../conversation/model-input.ts'
import type { Deps } from '../../deps.ts'
import type { Attempt } from './attempt.ts'
import type { TurnContext } from './turn-context.ts'

/** One attempt at one model call of a turn. */
export type ModelCall = {
  deps: Deps
  context: TurnContext
  given: ModelInput
  step: string
  iteration: number
  execId: string
  attempt: Attempt
  startedAt: number
}
