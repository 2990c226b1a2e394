import { ApiError } from 'agent-session-client'
import { useEffect, useRef, useState } from './ui.ts'

/** Pause before a temporarily failed load is repeated. */
const RETRY_MS = 3000
/** Largest page of a list. */
const PAGE = 100

export type Loaded<T> = {
  value: T | undefined
  error: unknown
  /** Loads again, and keeps the current value until then. */
  reload(): void
  /** Loads again unless a load is under way. */
  refresh(): void
}

/**
 * Loads the data of a view, again whenever `keys` change. Outdated results are dropped. A load that fails temporarily,
 * as during a restart, is repeated.
 */
export function useLoad<T>(load: () => Promise<T>, keys: unknown[]): Loaded<T> {
  const [state, setState] = useState<{ value?: T; error?: unknown }>({})
  const [round, setRound] = useState(0)
  const isLoading = useRef(false)
  const reload = () => setRound((before) => before + 1)
  useEffect(() => {
    let isWanted = true
    let timer: ReturnType<typeof setTimeout> | undefined
    const settle = (change: (before: { value?: T }) => { value?: T; error?: unknown }) => {
      if (!isWanted) return
      isLoading.current = false
      setState(change)
    }
    isLoading.current = true
    load().then(
      (value) => settle(() => ({ value })),
      (error: unknown) => {
        settle((before) => ({ ...before, error }))
        if (isWanted && isTemporary(error)) timer = setTimeout(reload, RETRY_MS)
      },
    )
    return () => {
      isWanted = false
      clearTimeout(timer)
    }
  }, [...keys, round])
  return { value: state.value, error: state.error, reload, refresh: () => isLoading.current || reload() }
}

/** Calls a function at an interval while the page is visible. */
export function useEvery(ms: number, run: () => void): void {
  const latest = useRef(run)
  latest.current = run
  useEffect(() => {
    const timer = setInterval(() => document.hidden || latest.current(), ms)
    return () => clearInterval(timer)
  }, [ms])
}

/** Reads a list page by page, up to some number of items. */
export async function readPages<T>(
  read: (part: { limit: number; offset: number }) => Promise<{ data: T[] }>,
  most = Number.POSITIVE_INFINITY,
): Promise<T[]> {
  const found: T[] = []
  while (found.length < most) {
    const limit = Math.min(PAGE, most - found.length)
    const { data } = await read({ limit, offset: found.length })
    found.push(...data)
    if (data.length < limit) break
  }
  return found
}

export const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.status === 404

/** Reports whether the same request may succeed later: the service did not answer, or asks to retry. */
export const isTemporary = (error: unknown): boolean =>
  error instanceof ApiError ? error.status === 429 || error.status >= 500 : error instanceof TypeError
