/**
 * Whether this thread still does its other work, by a timer of 20 ms. `busyMs` is the longest that it worked at one
 * thing, `gapMs` the longest that the timer waited, which other processes add to.
 */
export function watchEventLoop(): { stop(): { busyMs: number; gapMs: number } } {
  const longest = { busyMs: 0, gapMs: 0 }
  let lastAt = performance.now()
  let lastCpu = process.threadCpuUsage()
  const look = () => {
    const { user, system } = process.threadCpuUsage(lastCpu)
    longest.busyMs = Math.max(longest.busyMs, (user + system) / 1000)
    longest.gapMs = Math.max(longest.gapMs, performance.now() - lastAt)
    lastAt = performance.now()
    lastCpu = process.threadCpuUsage()
  }
  const timer = setInterval(look, 20)
  return {
    stop: () => {
      look()
      clearInterval(timer)
      return longest
    },
  }
}
