import { condition, defineSignal, setHandler } from '@temporalio/workflow'
import { RESUME_SIGNAL } from './messages.ts'

/** Tells a workflow that there is news in the record. */
export type News = {
  /** Resolves with true at the next signal, or at once if one came since the last call. Else with false after `ms`. */
  next(ms: number): Promise<boolean>
}

export function createNews(): News {
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
