import { condition, defineSignal, setHandler } from '@temporalio/workflow'
import { RESUME_SIGNAL } from './messages.ts'

/** Tells a workflow that there is news in the record. */
export type ResumeSignal = {
  /** Resolves with true at the next signal, or at once if one came since the last call. Else with false after `ms`. */
  next(ms: number): Promise<boolean>
  /** Whether a signal has come since it was last forgotten or waited for. */
  hasCome(): boolean
  forget(): void
}

export function createResumeSignal(): ResumeSignal {
  let isPending = false
  setHandler(defineSignal(RESUME_SIGNAL), () => {
    isPending = true
  })
  return {
    next: async (ms) => {
      const hasCome = await condition(() => isPending, Math.max(1, ms))
      isPending = false
      return hasCome
    },
    hasCome: () => isPending,
    forget: () => {
      isPending = false
    },
  }
}
