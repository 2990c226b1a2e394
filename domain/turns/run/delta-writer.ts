/** What a delta event needs beyond its own text: all of the message so far. */
export type Delta = { delta: string; accumulated: string }

export type DeltaWriter = {
  push(text: string): void
  /** Waits for what is under way and hands over what was not written yet; nothing is written after it. */
  finish(): Promise<Delta | undefined>
}

/**
 * Batches streamed text: the first piece is written at once, with whatever else comes in the same turn of the event
 * loop, then one write each `batchMs`, one at a time, so that the order holds and a slow database makes larger
 * batches, not a queue. `onError` is told of the first failed
 * write; nothing is written after it.
 */
export function createDeltaWriter(
  batchMs: number,
  write: (delta: Delta) => Promise<void>,
  onError: (error: unknown) => void,
): DeltaWriter {
  let accumulated = ''
  let pending = ''
  let writing: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let first: NodeJS.Immediate | undefined
  let closed = false

  const flush = () => {
    timer = undefined
    if (closed || pending === '' || writing !== undefined) return
    const delta = take()
    writing = write(delta)
      .catch((error) => {
        closed = true
        onError(error)
      })
      .finally(() => {
        writing = undefined
        if (pending !== '' && !closed) timer = setTimeout(flush, batchMs)
      })
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
      else if (accumulated !== '' && writing === undefined && timer === undefined) timer = setTimeout(flush, batchMs)
    },
    finish: async () => {
      closed = true
      clearTimeout(timer)
      clearImmediate(first)
      await writing
      return pending === '' ? undefined : take()
    },
  }
}
