import { setImmediate as nextRound } from 'node:timers/promises'

/** Turn of one request to work on its large body. */
export type ParseTurn = {
  /** Waits before the next step of the work: first for the turn, then for everything else that the event loop has to do. */
  step(): Promise<void>
  end(): void
}
export type ParseQueue = (owner: string | undefined) => ParseTurn

/**
 * Lets one large body be worked on at a time, in steps, so that everything else gets its time in between. Owners take
 * turns: one who sends many bodies waits for their own. The memory for bodies bounds the queue.
 */
export function createParseQueue(): ParseQueue {
  const waiting = new Map<string, (() => void)[]>()
  let isTaken = false
  const passOn = () => {
    const [first] = waiting
    isTaken = first !== undefined
    if (first === undefined) return
    const [owner, [next, ...others]] = first
    waiting.delete(owner)
    if (others.length > 0) waiting.set(owner, others)
    next?.()
  }
  return (owner = '') => {
    let isMine = false
    const take = async () => {
      isMine = true
      if (isTaken) await new Promise<void>((resolve) => waiting.set(owner, [...(waiting.get(owner) ?? []), resolve]))
      isTaken = true
    }
    return {
      async step() {
        if (!isMine) await take()
        await nextRound()
      },
      end() {
        if (isMine) setImmediate(passOn)
        isMine = false
      },
    }
  }
}
