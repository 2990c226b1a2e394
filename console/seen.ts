/** Time for which a hidden page keeps its stream: a browser has few connections for all its pages. */
const HIDDEN_MS = 10_000

/** Returns a controller that aborts with another signal, or when the page has been hidden for some time. */
export function abortWhenHidden(outer: AbortSignal): AbortController {
  const controller = new AbortController()
  const { signal } = controller
  let timer: ReturnType<typeof setTimeout> | undefined
  const look = () => {
    clearTimeout(timer)
    if (document.hidden) timer = setTimeout(() => controller.abort(), HIDDEN_MS)
  }
  signal.addEventListener('abort', () => clearTimeout(timer))
  outer.addEventListener('abort', () => controller.abort(), { signal })
  document.addEventListener('visibilitychange', look, { signal })
  if (outer.aborted) controller.abort()
  look()
  return controller
}

/** Waits until the page is visible, or the signal aborts. */
export const untilSeen = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (!document.hidden || signal.aborted) return resolve()
    const done = new AbortController()
    const look = () => {
      if (document.hidden && !signal.aborted) return
      done.abort()
      resolve()
    }
    document.addEventListener('visibilitychange', look, { signal: done.signal })
    signal.addEventListener('abort', look, { signal: done.signal })
  })
