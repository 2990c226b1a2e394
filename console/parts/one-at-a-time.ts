import { useRef } from '../ui.ts'

/** Returns a function that does the work of a name, unless that is under way: a second click sends no second request. */
export function useOneAtATime(): (name: string, work: () => unknown) => Promise<void> {
  const running = useRef(new Set<string>())
  return async (name, work) => {
    if (running.current.has(name)) return
    running.current.add(name)
    try {
      await work()
    } finally {
      running.current.delete(name)
    }
  }
}
