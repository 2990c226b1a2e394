/** Waits until the next body of this owner may be parsed. */
export type ParseQueue = (owner: string | undefined) => Promise<void>

/**
 * Lets one large body be parsed in each round of the event loop, so that everything else gets its time between two of
 * them. Owners take turns: one who sends many bodies waits for their own. The memory for bodies bounds the queue.
 */
export function createParseQueue(): ParseQueue {
  const waiting = new Map<string, (() => void)[]>()
  let isRunning = false
  const run = () => {
    const [first] = waiting
    isRunning = first !== undefined
    if (first === undefined) return
    const [owner, bodies] = first
    waiting.delete(owner)
    const [next, ...others] = bodies
    if (others.length > 0) waiting.set(owner, others)
    next?.()
    setImmediate(run)
  }
  return (owner = '') =>
    new Promise((resolve) => {
      waiting.set(owner, [...(waiting.get(owner) ?? []), resolve])
      if (isRunning) return
      isRunning = true
      setImmediate(run)
    })
}
