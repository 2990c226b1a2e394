import { condition, defineSignal, setHandler } from '@temporalio/workflow'
import { RESUME_SIGNAL } from './messages.ts'

/** Notifies a workflow of its client's answers. */
export type ClientAnswers = {
  /** Resolves with true at the next signal, or at once if one came since the last call. Else with false after `ms`. */
  next(ms: number): Promise<boolean>
}

export function createClientAnswers(): ClientAnswers {
  let heard = false
  setHandler(defineSignal(RESUME_SIGNAL), () => {
    heard = true
  })
  return {
    next: async (ms) => {
      const hasCome = await condition(() => heard, Math.max(1, ms))
      heard = false
      return hasCome
    },
  }
}
