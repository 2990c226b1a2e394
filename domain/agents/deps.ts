import type { Deps as Below } from '../conversation/deps.ts'
import type { TurnCaps } from './turn-caps.ts'

export type Deps = Below & {
  /** Limits of the installation, below which agents may have their own. */
  limits: TurnCaps
}
