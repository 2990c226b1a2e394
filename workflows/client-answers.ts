import { condition, defineSignal, setHandler } from '@temporalio/workflow'
import { RESUME_SIGNAL } from './messages.ts'

/** The client's answers as a workflow hears of them. */
export type ClientAnswers = {
  /** Resolves with true at the next signal, at once when one has come since the last call; false after `ms`. */
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
