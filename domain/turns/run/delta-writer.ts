import type { DeltaClock } from './delta-clock.ts'

/** New text of a delta event, with the whole text so far, itself included. */
export type Delta = { delta: string; accumulated: string }

export type DeltaWriter = {
  push(text: string): void
  /** Waits for the write in progress and returns the text not yet written, if any. Nothing is written afterwards. */
  finish(): Promise<Delta | undefined>
}

/**
 * Writes streamed text in batches. The first piece is written at once, together with whatever arrives in the same
 * iteration of the event loop; later writes when the clock says so. Only one write runs at a time, so that the order
 * holds and a slow database causes larger batches, not a queue. `onError` gets the error of the first failed write;
 * nothing is written after that.
 */
export function createDeltaWriter(
  clock: DeltaClock,
  write: (delta: Delta) => Promise<void>,
  onError: (error: unknown) => void,
): DeltaWriter {
  let accumulated = ''
  let pending = ''
  let writing: Promise<void> | undefined
  let cancel: (() => void) | undefined
  let first: NodeJS.Immediate | undefined
  let closed = false

  const flush = (): Promise<void> | undefined => {
    cancel = undefined
    if (closed || pending === '' || writing !== undefined) return undefined
    writing = write(take())
      .catch((error) => {
        closed = true
        onError(error)
      })
      .finally(() => {
        writing = undefined
        if (pending !== '' && !closed) cancel = clock.schedule(flush)
      })
    return writing
  }
  const take = (): Delta => {
    accumulated += pending
    const delta = { delta: pending, accumulated }
    pending = ''
    return delta
  }

  return {
    push: (text) => {
      const isFirst = accumulated === '' && pending === ''
      pending += text
      if (isFirst) first = setImmediate(flush)
      else if (accumulated !== '' && writing === undefined && cancel === undefined) cancel = clock.schedule(flush)
    },
    finish: async () => {
      closed = true
      cancel?.()
      clearImmediate(first)
      await writing
      return pending === '' ? undefined : take()
    },
  }
}
