import { sleep } from '../../lib/sleep.ts'

/** Returns a function that runs the work at once; calls within `restMs` of that are one more run afterwards. */
export function throttle(work: () => Promise<void>, restMs: number): () => void {
  let isResting = false
  let isDue = false
  const run = async (): Promise<void> => {
    isResting = true
    isDue = false
    await work()
    await sleep(restMs)
    isResting = false
    if (isDue) await run()
  }
  return () => {
    if (isResting) isDue = true
    else void run()
  }
}
