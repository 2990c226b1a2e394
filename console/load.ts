import { ApiError } from 'agent-session-client'
import { useEffect, useState } from './ui.ts'

export type Loaded<T> = {
  value: T | undefined
  error: unknown
  /** Loads again, and keeps what is there until then. */
  reload(): void
}

/** Loads what a view shows, again whenever `keys` change. What comes too late is dropped. */
export function useLoad<T>(load: () => Promise<T>, keys: unknown[]): Loaded<T> {
  const [state, setState] = useState<{ value?: T; error?: unknown }>({})
  const [round, setRound] = useState(0)
  useEffect(() => {
    let isWanted = true
    load().then(
      (value) => isWanted && setState({ value }),
      (error: unknown) => isWanted && setState((before) => ({ ...before, error })),
    )
    return () => {
      isWanted = false
    }
  }, [...keys, round])
  return { value: state.value, error: state.error, reload: () => setRound((before) => before + 1) }
}

export const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.status === 404
