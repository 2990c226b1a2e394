import { whenLoopIsFree } from '../../../lib/event-loop.ts'

/** Keeps each iteration of the event loop busy for 10 ms, until it is stopped. */
function keepBusy(): () => void {
  let isOver = false
  const work = () => {
    for (const until = performance.now() + 10; performance.now() < until; );
    if (!isOver) setImmediate(work)
  }
  setImmediate(work)
  return () => {
    isOver = true
  }
}

describe('less urgent work', () => {
  it('waits until the event loop has room', async () => {
    const stop = keepBusy()
    let isFree = false
    const free = whenLoopIsFree(60_000).then(() => {
      isFree = true
    })
    await new Promise((resolve) => setTimeout(resolve, 150))
    expect(isFree).toBe(false)
    stop()
    await free
  })

  it('waits no longer than its limit', async () => {
    const stop = keepBusy()
    await whenLoopIsFree(50)
    stop()
  })
})
