import { sleep } from '../../../lib/sleep.ts'
import type { Progress } from '../../tools/capabilities/tool-output.ts'

export type ProgressWriter = {
  report(progress: Progress): void
  /** Waits for the write in progress. Nothing is written afterwards. */
  finish(): Promise<void>
}

const PAUSE_MS = 100

/**
 * Writes the newest progress of a call: at once, then after each pause. Reports in between are dropped, and so is
 * everything after a failed write: the call's result meets the same failure, and reports it.
 */
export function createProgressWriter(write: (progress: Progress) => Promise<void>): ProgressWriter {
  const closed = new AbortController()
  let newest: Progress | undefined
  let writing = Promise.resolve()
  let isWriting = false

  const writeAll = async () => {
    while (newest !== undefined && !closed.signal.aborted) {
      const progress = newest
      newest = undefined
      writing = write(progress).catch(() => closed.abort())
      await writing
      await sleep(PAUSE_MS, closed.signal)
    }
    isWriting = false
  }
  return {
    report: (progress) => {
      newest = progress
      if (isWriting) return
      isWriting = true
      void writeAll()
    },
    finish: async () => {
      closed.abort()
      await writing
    },
  }
}
