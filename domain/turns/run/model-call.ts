import type { ModelInput } from '../../conversation/model-input.ts'
import type { CatalogueModel } from '../../models/llm/catalogue.ts'
import type { Model } from '../../models/llm/model.ts'
import type { Profile } from '../../models/llm/profiles/schema.ts'
import type { Deps } from '../deps.ts'
import type { Attempt } from './running-attempt.ts'
import type { TurnContext } from './turn-context.ts'

/** One attempt at one model call of a turn. */
export type ModelCall = {
  deps: Deps
  context: TurnContext
  model: CatalogueModel
  /** Limits and prices of the model, if known. */
  profile: Profile | undefined
  ask: Model
  /** Limit on the tokens of its answer, below the model's own. */
  maxOutputTokens: number | undefined
  systemPrompt: string
  modelInput: ModelInput
  step: string
  iteration: number
  execId: string
  attempt: Attempt
  /** Aborts when the attempt's own does, and when the turn is ended elsewhere. */
  signal: AbortSignal
  /** Time of `performance.now()`. */
  startedAt: number
}
