/**
 * Measures with a 20 ms timer whether this thread's event loop is blocked. `busyMs` is the longest uninterrupted work
 * in the thread's own CPU time, so other load on the machine does not count.
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
