/**
 * Whether this thread still does its other work, by a timer of 20 ms. `busyMs` is the longest that it worked at one
 * thing, in its own CPU time: what others on the machine do does not count.
 */
export function watchEventLoop(): { stop(): { busyMs: number } } {
  const longest = { busyMs: 0 }
  let lastCpu = process.threadCpuUsage()
  const look = () => {
    const { user, system } = process.threadCpuUsage(lastCpu)
    longest.busyMs = Math.max(longest.busyMs, (user + system) / 1000)
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
