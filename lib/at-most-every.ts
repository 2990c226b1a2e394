/** Limits how often a function runs: at once, and after each pause once more for all calls within it. `stop` ends that. */
export function atMostEvery(pauseMs: number, run: () => void) {
  let timer: NodeJS.Timeout | undefined
  let isWanted = false
  const call = () => {
    if (timer !== undefined) {
      isWanted = true
      return
    }
    timer = setTimeout(() => {
      timer = undefined
      if (!isWanted) return
      isWanted = false
      call()
    }, pauseMs)
    timer.unref()
    run()
  }
  return { call, stop: () => clearTimeout(timer) }
}
